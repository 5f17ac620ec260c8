#include "router/gateway/token_desk.h"

#include <utility>

namespace fathom {
namespace {

size_t BytesOf(const TokenQuestion& question) {
  return question.model.size() + fathom::BytesOf(question.parts);
}

// A copy of the question that points into `text`, which must not move afterwards.
TokenQuestion CopyOf(const TokenQuestion& question, std::string& text) {
  text.reserve(BytesOf(question));
  text += question.model;
  TokenQuestion copy;
  copy.fleet = question.fleet;
  copy.engine = question.engine;
  copy.reasoning_parser = question.reasoning_parser;
  copy.model = text;
  copy.parts = fathom::CopyOf(question.parts, text);
  return copy;
}

}  // namespace

Task<TokenDesk::Outcome> TokenDesk::Ask(TextKey key, const TokenQuestion& question,
                                        TimePoint deadline) {
  const auto found = calls_.find(key);
  const std::shared_ptr<Call> call = found != calls_.end() ? found->second : Open(key, question);
  if (!call) co_return std::unexpected(TokenFailure::kOverload);
  if (call->outcome) co_return *call->outcome;
  WakeableWait wait(loop_, deadline);
  const auto place = call->waiting.insert(call->waiting.end(), &wait);
  co_await wait;
  if (call->outcome) co_return *call->outcome;
  call->waiting.erase(place);
  co_return std::unexpected(TokenFailure::kTimeout);
}

// Null if too many questions are open.
std::shared_ptr<TokenDesk::Call> TokenDesk::Open(const TextKey& key,
                                                 const TokenQuestion& question) {
  const size_t bytes = BytesOf(question);
  if (calls_.size() >= kMaxOpen || bytes > kMaxBytes - bytes_) return nullptr;
  auto call = std::make_shared<Call>();
  call->key = key;
  call->question = CopyOf(question, call->text);
  calls_.emplace(key, call);
  bytes_ += bytes;
  Spawn(Run(shared_from_this(), call));
  return call;
}

Task<void> TokenDesk::Run(std::shared_ptr<TokenDesk> desk, std::shared_ptr<Call> call) {
  const TimePoint asked = desk->loop_.now();
  auto tokenizing = desk->source_->Tokenize(call->question, asked + kLongest);
  auto answer = co_await tokenizing;
  desk->duration_.Observe(desk->loop_.now() - asked);
  desk->Close(*call, std::move(answer));
}

void TokenDesk::Close(Call& call, TokenAnswer answer) {
  calls_.erase(call.key);
  bytes_ -= call.text.size();
  if (answer) {
    answer->shrink_to_fit();
    auto tokens = std::make_shared<const std::vector<TokenId>>(*std::move(answer));
    cache_.Put(call.key, tokens);
    call.outcome = Outcome(std::move(tokens));
  } else {
    call.outcome = std::unexpected(answer.error());
  }
  // A resumed request may ask again. That opens a new call, because this one is already closed.
  for (WakeableWait* const wait : std::exchange(call.waiting, {})) wait->WakeNow();
}

}  // namespace fathom
