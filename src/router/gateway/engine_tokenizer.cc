#include "router/gateway/engine_tokenizer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "router/gateway/tokenize_wire.h"

namespace fathom {
namespace {

using Outcome = TokenizeRoster::Outcome;

// Of another API's request: it is read and written again on the loop, in some milliseconds.
constexpr size_t kMostConverted = size_t{1} << 20;

Outcome OutcomeOf(const TokenAnswer& answer) {
  if (answer || answer.error() == TokenFailure::kRefused) return Outcome::kAnswered;
  return answer.error() == TokenFailure::kUnsupported ? Outcome::kUnsupported : Outcome::kFailed;
}

// A worker that has not answered by then is late.
Duration LateAfter(Duration patience) {
  return std::clamp<Duration>(patience / 4, std::chrono::milliseconds(10), std::chrono::seconds(1));
}

}  // namespace

Task<TokenAnswer> EngineTokenizer::Tokenize(const TokenQuestion& question, TimePoint deadline) {
  const auto race = std::make_shared<Race>();
  const bool converted = question.parts.api != PromptApi::kChat;
  if (converted && BytesOf(question.parts) > kMostConverted) {
    co_return std::unexpected(TokenFailure::kOverload);
  }
  auto body = WriteTokenizeBody(question);
  if (!body) co_return std::unexpected(TokenFailure::kRefused);
  race->body = *std::move(body);
  race->may_have_none = question.parts.prompt == R"("")";
  race->deadline = deadline;
  for (bool hedged = false;;) {
    TokenFailure why = race->failure;
    if (!AskNext(question, race, why) && race->open == 0) co_return std::unexpected(why);
    hedged = hedged || race->open > 1;
    auto awaiting = Await(*race, hedged ? kNever : loop_.now() + LateAfter(roster_.patience()));
    co_await awaiting;
    if (race->decided) co_return *std::move(race->decided);
    if (race->open > 0) {
      hedged = hedged || race->tried.size() >= kAttempts;
      continue;
    }
    if (race->failure == TokenFailure::kTimeout) co_return std::unexpected(race->failure);
  }
}

bool EngineTokenizer::AskNext(const TokenQuestion& question, const std::shared_ptr<Race>& race,
                              TokenFailure& why) {
  if (race->tried.size() >= kAttempts) return false;
  const auto worker = roster_.Select(*question.fleet, question.model, race->tried, loop_.now());
  if (!worker) {
    const bool none = race->tried.empty() || worker.error() == TokenFailure::kUnsupported;
    if (none) why = worker.error();
    return false;
  }
  race->tried.push_back((*worker)->id());
  ++race->open;
  Spawn(Run(shared_from_this(), race, *worker));
  return true;
}

Task<void> EngineTokenizer::Run(std::shared_ptr<EngineTokenizer> self, std::shared_ptr<Race> race,
                                std::shared_ptr<Worker> worker) {
  auto asking = self->Ask(*worker, race->body, race->deadline);
  auto answer = co_await asking;
  // Some servers' /tokenize expects another body and finds no text in ours.
  if (answer && answer->empty() && !race->may_have_none) {
    answer = std::unexpected(TokenFailure::kUnsupported);
  }
  self->roster_.Report(worker->id(), OutcomeOf(answer), self->loop_.now());
  --race->open;
  if (answer || answer.error() == TokenFailure::kRefused) {
    if (!race->decided) race->decided = std::move(answer);
  } else {
    race->failure = answer.error();
  }
  if (WakeableWait* const wait = std::exchange(race->waiting, nullptr)) wait->WakeNow();
}

// Until there is an answer, no question is open any more, or the time is over.
Task<void> EngineTokenizer::Await(Race& race, TimePoint until) {
  while (race.open > 0 && !race.decided) {
    WakeableWait wait(loop_, until);
    race.waiting = &wait;
    const WakeCause cause = co_await wait;
    race.waiting = nullptr;
    if (cause == WakeCause::kTimedOut) co_return;
  }
}

Task<TokenAnswer> EngineTokenizer::Ask(const Worker& worker, std::string_view body,
                                       TimePoint deadline) {
  auto posting = calls_.Post(worker, "/tokenize", body, kMaxAnswer, deadline);
  const auto answer = co_await posting;
  if (answer) co_return ReadTokenizeAnswer(*answer);
  co_return std::unexpected(loop_.now() >= deadline ? TokenFailure::kTimeout
                                                    : TokenFailure::kError);
}

}  // namespace fathom
