#include "io/nats/nats_reader.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace fathom {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kNatsBlanks = " \t";

size_t LongestOf(std::string_view line) {
  const bool info = EqualsIgnoreCase(line.substr(0, 4), "INFO");
  return info ? NatsReader::kLongestInfo : NatsReader::kLongestLine;
}

std::string_view WithoutQuotes(std::string_view text) {
  const bool quoted = text.size() >= 2 && text.starts_with('\'') && text.ends_with('\'');
  return quoted ? text.substr(1, text.size() - 2) : text;
}

}  // namespace

NatsReader::Step NatsReader::Fault() {
  state_ = State::kFaulty;
  gathered_.clear();
  text_ = {};
  return Step::kFault;
}

NatsReader::Step NatsReader::Take(std::string_view& in) {
  for (;;) {
    if (state_ == State::kFaulty) return Step::kFault;
    if (std::exchange(complete_, false)) gathered_.clear();
    text_ = {};
    if (in.empty()) return Step::kMore;
    std::optional<Step> step;
    switch (state_) {
      case State::kLine:
        step = TakeLine(in);
        break;
      case State::kPayload:
        step = TakePayload(in);
        break;
      default:
        step = PassOver(in);
    }
    if (step) return *step;
  }
}

std::optional<NatsReader::Step> NatsReader::TakeLine(std::string_view& in) {
  const size_t end = in.find('\n');
  const bool whole = end != std::string_view::npos;
  std::string_view line = in.substr(0, end);
  in.remove_prefix(whole ? end + 1 : in.size());
  if (!whole || !gathered_.empty()) line = gathered_.append(line);
  if (line.size() > LongestOf(line)) return Fault();
  if (!whole) return std::nullopt;
  complete_ = true;
  if (line.ends_with('\r')) line.remove_suffix(1);
  return Understand(line);
}

std::optional<NatsReader::Step> NatsReader::Understand(std::string_view line) {
  const std::string_view verb = line.substr(0, line.find_first_of(kNatsBlanks));
  const std::string_view rest = Trim(line.substr(verb.size()));
  if (EqualsIgnoreCase(verb, "MSG")) return BeginMessage(rest, false);
  if (EqualsIgnoreCase(verb, "HMSG")) return BeginMessage(rest, true);
  if (EqualsIgnoreCase(verb, "PING")) return Step::kPing;
  if (EqualsIgnoreCase(verb, "PONG")) return Step::kPong;
  if (EqualsIgnoreCase(verb, "+OK")) return std::nullopt;
  if (EqualsIgnoreCase(verb, "INFO")) {
    text_ = rest;
    return Step::kInfo;
  }
  if (EqualsIgnoreCase(verb, "-ERR")) {
    text_ = WithoutQuotes(rest);
    return Step::kError;
  }
  return Fault();
}

// MSG SUBJECT SID [REPLY] SIZE, HMSG SUBJECT SID [REPLY] HEADERS SIZE.
std::optional<NatsReader::Step> NatsReader::BeginMessage(std::string_view arguments,
                                                         bool with_headers) {
  const auto words = SplitAny(arguments, kNatsBlanks);
  const size_t least = with_headers ? 4 : 3;
  if (words.size() < least || words.size() > least + 1) return Fault();
  const auto size = ParseDecimal(words.back());
  if (!size || *size > kMostPassedOver) return Fault();
  const bool wanted = !with_headers && *size <= longest_message_;
  state_ = wanted ? State::kPayload : State::kPassOver;
  left_ = *size + kLineEnd.size();
  return std::nullopt;
}

std::optional<NatsReader::Step> NatsReader::TakePayload(std::string_view& in) {
  std::string_view piece = in.substr(0, left_);
  in.remove_prefix(piece.size());
  left_ -= piece.size();
  if (left_ > 0 || !gathered_.empty()) piece = gathered_.append(piece);
  if (left_ > 0) return std::nullopt;
  if (!piece.ends_with(kLineEnd)) return Fault();
  complete_ = true;
  state_ = State::kLine;
  text_ = piece.substr(0, piece.size() - kLineEnd.size());
  return Step::kMessage;
}

std::optional<NatsReader::Step> NatsReader::PassOver(std::string_view& in) {
  const size_t passed = std::min(left_, in.size());
  in.remove_prefix(passed);
  left_ -= passed;
  if (left_ == 0) state_ = State::kLine;
  return std::nullopt;
}

}  // namespace fathom
