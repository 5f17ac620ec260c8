#include "gateway/token_desk.h"

#include <utility>

namespace fathom {
namespace {

size_t BytesOf(const TokenQuestion& question) {
  return question.model.size() + fathom::BytesOf(question.parts);
}

// The same question, on a text of its own. `text` must not move afterwards.
TokenQuestion CopyOf(const TokenQuestion& question, std::string& text) {
  text.reserve(BytesOf(question));
  text += question.model;
  TokenQuestion copy;
  copy.fleet = question.fleet;
  copy.model = text;
  copy.parts = fathom::CopyOf(question.parts, text);
  return copy;
}

}  // namespace

// A request that waits for an answer, or for its deadline.
class TokenDesk::Wait {
 public:
  Wait(Call& call, Loop& loop, TimePoint deadline)
      : call_(call), loop_(loop), deadline_(deadline), timer_(*this) {}
  bool await_ready() const { return call_.outcome.has_value(); }
  void await_suspend(std::coroutine_handle<> waiting) {
    waiting_ = waiting;
    place_ = call_.waiting.insert(call_.waiting.end(), this);
    loop_.timers().Arm(timer_, deadline_);
  }
  void await_resume() const {}

  // The call has taken it from its list.
  void Resume() {
    timer_.Disarm();
    waiting_.resume();
  }

 private:
  struct Deadline : Timer {
    explicit Deadline(Wait& w) : Timer(&OnFire), wait(w) {}
    static void OnFire(Timer& timer) { static_cast<Deadline&>(timer).wait.GiveUp(); }
    Wait& wait;
  };

  void GiveUp() {
    call_.waiting.erase(place_);
    waiting_.resume();
  }

  Call& call_;
  Loop& loop_;
  const TimePoint deadline_;
  Deadline timer_;
  std::coroutine_handle<> waiting_;
  std::list<Wait*>::iterator place_;
};

Task<TokenDesk::Outcome> TokenDesk::Ask(TextKey key, const TokenQuestion& question,
                                        TimePoint deadline) {
  const auto found = calls_.find(key);
  const std::shared_ptr<Call> call = found != calls_.end() ? found->second : Open(key, question);
  if (!call) co_return std::unexpected(TokenFailure::kOverload);
  Wait wait(*call, loop_, deadline);
  co_await wait;
  if (!call->outcome) co_return std::unexpected(TokenFailure::kTimeout);
  co_return *call->outcome;
}

// Null where too much is open already.
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
  // Those who go on may ask again, but not this call: it is off the desk.
  for (Wait* const wait : std::exchange(call.waiting, {})) wait->Resume();
}

}  // namespace fathom
