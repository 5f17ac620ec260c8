#include "diagnose/doctor/probe_turn.h"

#include "base/peer_text.h"
#include "base/text.h"
#include "io/client/answer_reader.h"

namespace fathom {
namespace {

// What a server says that refuses: OpenAI's message where it has that shape.
std::string Refusal(int status, const std::string& body) {
  const auto json = Json::Parse(body);
  const Json* const error = json ? json->Find("error") : nullptr;
  const Json* const message = error == nullptr ? nullptr : error->Find("message");
  if (message == nullptr || message->string() == nullptr) return fmt::format("status {}", status);
  return fmt::format("status {}: {}", status, Shown(*message->string(), 200));
}

}  // namespace

void ProbeTurn::TakeHead(const ResponseHead& head) {
  status = head.status;
  const Header* const header = head.headers.Find("x-fathom-cached-tokens");
  if (header != nullptr) announced = ParseDecimal(header->value);
}

Result<void> ProbeTurn::TakePiece(std::string_view piece, TimePoint now) {
  if (status != 200) {
    refusal_ += piece.substr(0, kMaxRefusal - refusal_.size());
    if (refusal_.size() < kMaxRefusal) return {};
    return Outcome();
  }
  events_.Feed(piece);
  while (const auto data = events_.Next()) TRY_VOID(TakeEvent(*data, now));
  return {};
}

Result<void> ProbeTurn::TakeEvent(std::string_view data, TimePoint now) {
  if (!begun_) first_token = now;
  begun_ = true;
  if (data == "[DONE]") {
    done_ = true;
    return {};
  }
  const auto chunk = Json::Parse(data);
  if (!chunk) return Fail(Blame::kPeer, "an event that is not JSON");
  if (chunk->Find("error") != nullptr) return Fail(Blame::kPeer, "an error event");
  TakeUsage(*chunk);
  const Json* const choices = chunk->Find("choices");
  if (choices == nullptr || choices->array() == nullptr || choices->array()->empty()) return {};
  const Json* const delta = choices->array()->front().Find("delta");
  if (delta != nullptr) TakeDelta(*delta, now);
  return {};
}

void ProbeTurn::TakeUsage(const Json& chunk) {
  const AnswerUsage usage = UsageOf(chunk);
  if (usage.prompt_tokens == 0) return;
  prompt_tokens = usage.prompt_tokens;
  // An engine that counts no cached tokens has no such member, or null for it.
  const Json* const details = chunk.Find("usage")->Find("prompt_tokens_details");
  const Json* const member = details == nullptr ? nullptr : details->Find("cached_tokens");
  if (member != nullptr) cached = member->unsigned_integer();
}

// Models that reason before they answer stream that under names of its own.
void ProbeTurn::TakeDelta(const Json& delta, TimePoint now) {
  for (const std::string_view name : {"content", "reasoning_content", "reasoning"}) {
    const Json* const part = delta.Find(name);
    if (part == nullptr || part->string() == nullptr || part->string()->empty()) continue;
    if (!has_token_) first_token = now;
    has_token_ = true;
    if (name == "content" && text.size() < kMaxText) text += *part->string();
  }
}

Result<void> ProbeTurn::Outcome() const {
  if (status != 200) return Fail(Blame::kPeer, "{}", Refusal(status, refusal_));
  if (!done_) return Fail(Blame::kPeer, "the stream ended without [DONE]");
  return {};
}

}  // namespace fathom
