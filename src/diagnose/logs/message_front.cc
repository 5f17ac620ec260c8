#include "diagnose/logs/message_front.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "diagnose/logs/log_time.h"

namespace fathom {
namespace {

constexpr size_t kMaxPiece = 256;
constexpr size_t kMaxPieces = 16;

constexpr std::string_view kDigits = "0123456789";

bool IsFrontByte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '.' || c == ':' || c == '/' || c == '-' || c == '@';
}

bool IsName(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, IsFrontByte);
}

bool IsNumber(std::string_view word) {
  return !word.empty() && word.find_first_not_of(kDigits) == std::string_view::npos;
}

// Control bytes are space.
std::string_view TrimFront(std::string_view text) {
  const auto* const from =
      std::ranges::find_if(text, [](char c) { return static_cast<unsigned char>(c) > ' '; });
  return text.substr(static_cast<size_t>(from - text.begin()));
}

std::string_view WordAt(std::string_view text) {
  return text.substr(0, std::min(text.find_first_of(" \t\r\n"), text.size()));
}

std::string_view After(std::string_view text, std::string_view piece) {
  return TrimFront(text.substr(piece.size()));
}

// "2026-02-16T14:38:53.950961Z", "02-16", "14:38:53,753"
bool IsTime(std::string_view word) {
  constexpr size_t kShortest = 5;
  constexpr size_t kLongest = 40;
  return word.size() >= kShortest && word.size() <= kLongest && word[0] >= '0' && word[0] <= '9' &&
         word.find_first_not_of("0123456789-:.,/TZ+") == std::string_view::npos &&
         word.find_first_of("-:/") != std::string_view::npos;
}

bool IsLevel(std::string_view word) {
  constexpr auto kLevels = std::to_array<std::string_view>(
      {"TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "WARNING", "ERROR", "CRITICAL", "FATAL", "trace",
       "debug", "info", "notice", "warn", "warning", "error", "critical", "fatal"});
  if (word.ends_with(':')) word.remove_suffix(1);
  return std::ranges::find(kLevels, word) != kLevels.end();
}

bool IsMonth(std::string_view word) {
  constexpr std::string_view kMonths = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec";
  const size_t at = kMonths.find(word);
  return word.size() == 3 && at != std::string_view::npos && at % 4 == 0;
}

// "fathom[881]:", "fathom:"
bool IsTag(std::string_view word) {
  if (!word.ends_with(':')) return false;
  word.remove_suffix(1);
  if (!word.ends_with("]")) return IsName(word);
  const size_t bracket = std::min(word.find('['), word.size() - 1);
  return IsName(word.substr(0, bracket)) &&
         IsNumber(word.substr(bracket + 1, word.size() - bracket - 2));
}

// "[pod/frontend-0/main]", "(EngineCore_0 pid=123)"; empty where it does not end.
std::string_view Bracketed(std::string_view text, char close) {
  const size_t end = text.substr(0, kMaxPiece).find_first_of(close == ']' ? "]'\"\n" : ")'\"\n");
  if (end == std::string_view::npos || text[end] != close) return {};
  return text.substr(0, end + 1);
}

// "http-request{method=POST id=\"a b\"}:"; what is in it may be a client's.
std::string_view SpanAt(std::string_view text) {
  const size_t brace = text.find_first_of("{ ");
  if (brace == std::string_view::npos || text[brace] == ' ') return {};
  if (!IsName(text.substr(0, brace))) return {};
  bool quoted = false;
  constexpr size_t kLongest = 4096;
  for (size_t at = brace; at < std::min(text.size(), kLongest); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      quoted = !quoted;
    } else if (text[at] == '}' && !quoted) {
      return text.substr(at + 1).starts_with(':') ? text.substr(0, at + 2) : std::string_view();
    }
  }
  return {};
}

class Front {
 public:
  explicit Front(std::string_view text) : rest_(TrimFront(text)) {}

  std::string_view rest() const { return rest_; }
  bool has_path() const { return has_path_; }

  // Over one piece. False: what is here is the message.
  bool Skip() {
    if (rest_.empty() || ++pieces_ > kMaxPieces) return false;
    if (rest_[0] == '[') return Take(Bracketed(rest_, ']'), Piece::kOther);
    if (rest_[0] == '(') return Take(Bracketed(rest_, ')'), Piece::kOther);
    const std::string_view word = WordAt(rest_);
    if (word.size() <= kMaxPiece && (SkipStamp(word) || SkipTarget(word) || SkipNames(word))) {
      return true;
    }
    return Take(SpanAt(rest_), Piece::kOther);
  }

 private:
  enum class Piece : uint8_t { kNone, kTime, kLevel, kMonth, kOther };

  bool Take(std::string_view piece, Piece kind) {
    if (piece.empty()) return false;
    rest_ = After(rest_, piece);
    last_ = kind;
    return true;
  }

  bool SkipStamp(std::string_view word) {
    if (IsTime(word)) return Take(word, Piece::kTime);
    if (IsLevel(word)) return Take(word, Piece::kLevel);
    if (IsMonth(word)) return Take(word, Piece::kMonth);
    if (last_ == Piece::kMonth && IsNumber(word)) return Take(word, Piece::kOther);
    return false;
  }

  // "dynamo_llm::kv_router:", "llm_engine.py:237]", "Engine 000:"; right after a level any name.
  bool SkipTarget(std::string_view word) {
    if (word == "Engine") {
      const std::string_view number = WordAt(After(rest_, word));
      if (!number.ends_with(':') || !IsNumber(number.substr(0, number.size() - 1))) return false;
      rest_ = After(rest_, word);
      return Take(number, Piece::kOther);
    }
    if (word.ends_with(']') && word.find(".py:") != std::string_view::npos) {
      return IsName(word.substr(0, word.size() - 1)) && Take(word, Piece::kOther);
    }
    if (!IsTag(word)) return false;
    const bool path = word.find("::") != std::string_view::npos;
    if (!path && last_ != Piece::kLevel && word.find_first_of(".[") == std::string_view::npos) {
      return false;
    }
    has_path_ = has_path_ || path;
    return Take(word, Piece::kOther);
  }

  // Names of containers, pods and hosts, which are known by what stands behind them.
  bool SkipNames(std::string_view word) {
    if (!IsName(word)) return false;
    const std::string_view next = After(rest_, word);
    if (last_ == Piece::kNone && next.starts_with('|')) {
      rest_ = next;
      return Take("|", Piece::kNone);
    }
    if (last_ == Piece::kTime && (word == "stdout" || word == "stderr")) {
      rest_ = next;
      return Take(WordAt(next).size() == 1 ? WordAt(next) : std::string_view(), Piece::kOther);
    }
    if (last_ == Piece::kTime && IsTag(WordAt(next))) {
      rest_ = next;
      return Take(WordAt(next), Piece::kOther);
    }
    // "frontend-0 main 2026-02-16T14:38:53Z"
    const std::string_view second = WordAt(next);
    const bool stamped = ReadTime(next) || (IsName(second) && ReadTime(After(next, second)));
    return last_ == Piece::kNone && stamped && Take(word, Piece::kNone);
  }

  std::string_view rest_;
  Piece last_ = Piece::kNone;
  bool has_path_ = false;
  size_t pieces_ = 0;
};

}  // namespace

Opening OpeningOf(std::string_view message) {
  Front front(message);
  do {
    if (const auto kind = PhraseAt(front.rest())) {
      return {Phrase{*kind, message.size() - front.rest().size()}, front.has_path()};
    }
  } while (front.Skip());
  return {std::nullopt, front.has_path()};
}

}  // namespace fathom
