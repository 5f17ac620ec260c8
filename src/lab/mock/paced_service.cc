#include "lab/mock/paced_service.h"

#include <fmt/format.h>

#include <iterator>

#include "lab/mock/generate_answer.h"
#include "lab/mock/pages.h"

namespace fathom {
namespace {

constexpr uint64_t kBurst = 64;  // tokens that are overdue leave together, but others get a turn
constexpr size_t kPiece = 64 << 10;

// Filler for answers of any length.
std::string_view Block() {
  static const std::string block = [] {
    std::string text;
    while (text.size() < kPiece) text += "0123456789abcdef";
    return text;
  }();
  return block;
}

}  // namespace

Task<Outcome> PacedService::Serve(Visit& visit) {
  const bool completion = visit.route == MockRoute::kCompletions || visit.route == MockRoute::kChat;
  auto answering = visit.request.stream && completion         ? AnswerStream(visit)
                   : visit.request.answer_bytes && completion ? AnswerAtLength(visit)
                                                              : AnswerWhole(visit);
  const Outcome outcome = co_await answering;
  co_return outcome;
}

// From the beginning of the request, so that pauses do not add up their lateness.
TimePoint PacedService::Due(const Visit& visit, uint64_t token) const {
  if (visit.aborted) return visit.started;
  return visit.started + options_.first_token_delay +
         static_cast<int64_t>(token) * options_.token_interval;
}

// Those that are due, of the tokens that the answer would have.
uint64_t PacedService::TokensBy(const Visit& visit, TimePoint now) const {
  uint64_t tokens = 0;
  while (tokens < visit.tokens && Due(visit, tokens) <= now) ++tokens;
  return tokens;
}

bool PacedService::DiesWithin(const Visit& visit) const {
  return options_.die_after_tokens > 0 && options_.die_after_tokens < visit.tokens;
}

Task<Outcome> PacedService::AnswerWhole(Visit& visit) {
  const bool dies = DiesWithin(visit);
  const bool stalls = visit.request.stall_after && *visit.request.stall_after < visit.tokens;
  const uint64_t last = dies ? options_.die_after_tokens : visit.tokens;
  const TimePoint until = stalls ? kNever : Due(visit, last > 0 ? last - 1 : 0);
  const bool present = co_await visit.presence.Until(until);
  if (!present) co_return Outcome::kCancelled;
  if (silent_) {
    auto falling = FallSilent(visit);
    const Outcome outcome = co_await falling;
    co_return outcome;
  }
  if (dies) co_return Die(visit);
  if (options_.abort_running) {
    visit.tokens = TokensBy(visit, loop_.now());
    visit.finish_reason = "abort";
  }
  const std::string text = speaker_.Tokens(visit.tokens);
  auto finishing = Finish(visit, WholeAnswer(visit, text));
  const Outcome outcome = co_await finishing;
  co_return outcome;
}

// In the API's shape; an Anthropic stream comes in one piece.
Answer PacedService::WholeAnswer(const Visit& visit, std::string_view text) const {
  const CompletionRequest& request = visit.request;
  if (visit.route == MockRoute::kResponses) {
    return JsonAnswer(
        200, ResponsePage(visit.identity, request, text, visit.tokens, visit.finish_reason));
  }
  if (visit.route == MockRoute::kMessages && request.stream) {
    return {
        .content_type = "text/event-stream; charset=utf-8",
        .body = MessageEvents(visit.identity, request, text, visit.tokens, visit.finish_reason)};
  }
  if (visit.route == MockRoute::kMessages) {
    return JsonAnswer(
        200, MessagePage(visit.identity, request, text, visit.tokens, visit.finish_reason));
  }
  if (visit.route == MockRoute::kGenerate) {
    return GeneratePage(options_.engine, visit.identity, request, text, visit.tokens,
                        visit.finish_reason);
  }
  const AnswerEnvelope envelope =
      MakeEnvelope(visit.identity, visit.finish_reason, request.prompt_tokens, visit.tokens);
  return JsonAnswer(200, fmt::format("{}{}{}", envelope.before, text, envelope.after));
}

// Writes mock_answer_bytes of text without ever holding them.
Task<Outcome> PacedService::AnswerAtLength(Visit& visit) {
  ServerConnection& connection = visit.connection;
  uint64_t left = *visit.request.answer_bytes;
  const AnswerEnvelope envelope =
      MakeEnvelope(visit.identity, visit.finish_reason, visit.request.prompt_tokens, visit.tokens);
  std::string out;
  AppendHead(out, visit, "application/json");
  fmt::format_to(std::back_inserter(out), "content-length: {}\r\n\r\n{}",
                 envelope.before.size() + left + envelope.after.size(), envelope.before);
  connection.MarkAnswered();
  IoResult written = co_await connection.socket().Write(out, connection.WriteDeadline());
  while (written.ok() && left > 0) {
    const std::string_view piece = Block().substr(0, left);
    left -= piece.size();
    written = co_await connection.socket().Write(piece, connection.WriteDeadline());
  }
  if (written.ok()) {
    written = co_await connection.socket().Write(envelope.after, connection.WriteDeadline());
  }
  co_return written.ok() ? Outcome::kCompleted : Outcome::kCancelled;
}

Task<Outcome> PacedService::AnswerStream(Visit& visit) {
  ServerConnection& connection = visit.connection;
  Socket& socket = connection.socket();
  StreamFrames frames(visit.identity, speaker_);
  std::string head;
  AppendHead(head, visit, "text/event-stream; charset=utf-8");
  head += "transfer-encoding: chunked\r\n\r\n";
  connection.MarkAnswered();
  IoResult written = co_await socket.Write(head, connection.WriteDeadline());
  if (!written.ok()) co_return Outcome::kCancelled;

  const bool with_usage = visit.request.include_usage || options_.force_usage;
  const bool with_choices = options_.usage_with_choices;
  if (with_usage && with_choices) {
    frames.PutUsageWithChoices(visit.request.prompt_tokens, visit.tokens);
  }
  auto streaming = StreamTokens(visit, frames);
  const Outcome outcome = co_await streaming;
  if (outcome != Outcome::kCompleted) co_return outcome;

  if (with_usage && !with_choices) {
    const std::string_view usage = frames.Usage(visit.request.prompt_tokens, visit.tokens);
    written = co_await socket.Write(usage, connection.WriteDeadline());
    if (!written.ok()) co_return Outcome::kCancelled;
  }
  written = co_await socket.Write(frames.Done(), connection.WriteDeadline());
  co_return written.ok() ? Outcome::kCompleted : Outcome::kCancelled;
}

// The events with text in them, from the role to the finish_reason.
Task<Outcome> PacedService::StreamTokens(Visit& visit, StreamFrames& frames) {
  ServerConnection& connection = visit.connection;
  Socket& socket = connection.socket();
  const uint64_t die_at = DiesWithin(visit) ? options_.die_after_tokens : visit.tokens;
  const uint64_t stall_at = visit.request.stall_after.value_or(visit.tokens);
  for (uint64_t i = 0;; ++i) {
    if (i == die_at && die_at < visit.tokens) co_return Die(visit);
    const TimePoint due = i == stall_at && stall_at < visit.tokens ? kNever : Due(visit, i);
    if (due > loop_.now() || (i > 0 && i % kBurst == 0)) {
      const bool present = co_await visit.presence.Until(due);
      if (!present) co_return Outcome::kCancelled;
    }
    if (silent_) {
      auto falling = FallSilent(visit);
      const Outcome outcome = co_await falling;
      co_return outcome;
    }
    if (i == 0 && visit.identity.chat) {
      const IoResult begun = co_await socket.Write(frames.Role(), connection.WriteDeadline());
      if (!begun.ok()) co_return Outcome::kCancelled;
    }
    if (options_.abort_running) visit.finish_reason = "abort";
    const bool last = i + 1 >= visit.tokens || options_.abort_running;
    const std::string_view frame = visit.tokens == 0 ? frames.Nothing(visit.finish_reason)
                                   : last            ? frames.LastToken(i, visit.finish_reason)
                                                     : frames.Token(i);
    const IoResult written = co_await socket.Write(frame, connection.WriteDeadline());
    if (!written.ok()) co_return Outcome::kCancelled;
    if (last) co_return Outcome::kCompleted;
  }
}

}  // namespace fathom
