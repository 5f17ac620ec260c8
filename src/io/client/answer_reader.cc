#include "io/client/answer_reader.h"

namespace fathom {
namespace {

// The member of an object, or 0 if it is not an unsigned number.
uint64_t Number(const Json* object, std::string_view key) {
  const Json* const value = object == nullptr ? nullptr : object->Find(key);
  return value == nullptr ? 0 : value->unsigned_integer().value_or(0);
}

}  // namespace

Task<Result<void>> AnswerReader::Read() {
  pieces_.clear();
  for (;;) {
    connection_.in().Compact();
    const IoResult read = co_await connection_.socket().Read(connection_.in().room(), deadline_);
    if (!read.ok()) co_return TakeEnd(read.status);
    connection_.MarkStarted();
    connection_.in().Commit(read.bytes);
    if (!have_head_) {
      TRY_CO(have_head_, connection_.ParseHead(false));
      if (!have_head_) continue;
      connection_.in().Consume(connection_.head_size());
    }
    co_return TakeBody();
  }
}

Result<void> AnswerReader::TakeEnd(IoStatus status) {
  over_ = status == IoStatus::kEof && have_head_ &&
          connection_.body().framing() == BodyFraming::kUntilClose;
  if (!over_) return Fail(Blame::kPeer, "receive: {}", Describe(status));
  return {};
}

Result<void> AnswerReader::TakeBody() {
  Buffer& in = connection_.in();
  while (!connection_.body().done() && !in.empty()) {
    TRY(const auto step, connection_.body().Feed(in.view()));
    if (!step.payload.empty()) pieces_.push_back(step.payload);
    in.Consume(step.consumed);
  }
  over_ = connection_.body().done();
  return {};
}

Task<Result<void>> SendRequest(ClientConnection& connection, std::string_view request,
                               TimePoint deadline) {
  connection.BeginAnswer();
  const IoResult sent = co_await connection.socket().Write(request, deadline);
  if (!sent.ok()) co_return Fail(Blame::kPeer, "send: {}", Describe(sent.status));
  co_return Result<void>();
}

AnswerUsage UsageOf(const Json& answer) {
  const Json* const usage = answer.Find("usage");
  if (usage == nullptr) return {};
  return {.prompt_tokens = Number(usage, "prompt_tokens"),
          .cached_tokens = Number(usage->Find("prompt_tokens_details"), "cached_tokens"),
          .completion_tokens = Number(usage, "completion_tokens")};
}

}  // namespace fathom
