#include "router/gateway/response_search.h"

#include <algorithm>
#include <utility>

#include "io/http/fetch.h"
#include "router/routing/response_pins.h"

namespace fathom {
namespace {

using FoundKind = SearchResult::Kind;

// It stands in a path as it is, and every server reads that path alike.
bool CanBeAsked(std::string_view id) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == '~' || c == ':';
  };
  return !id.empty() && id.size() <= ResponsePins::kLongestId && std::ranges::all_of(id, plain) &&
         !std::ranges::all_of(id, [](char c) { return c == '.'; });
}

bool MayHold(const Member& member, std::string_view model) {
  return member.Serves(model) && HoldsResponses(member);
}

bool IsProbed(const Member& member, std::string_view model) {
  return member.state == WorkerState::kProbing && (!member.reported || member.Serves(model));
}

// Workers that have it, or may have it once they have been probed.
size_t CountPossible(const FleetSnapshot& fleet, std::string_view model) {
  return static_cast<size_t>(std::ranges::count_if(fleet.members(), [&](const Member& member) {
    return MayHold(member, model) || IsProbed(member, model);
  }));
}

Task<NetResult<void>> ReadHead(ClientConnection& connection, TimePoint deadline) {
  for (;;) {
    const auto parsed = connection.ParseHead(false);
    if (!parsed) co_return NetFail(NetCause::kBadAnswer, "{}", parsed.error().what);
    if (*parsed) co_return NetResult<void>();
    connection.in().Compact();
    const IoResult read = co_await connection.socket().Read(connection.in().room(), deadline);
    if (!read.ok()) co_return NetFail(CauseOf(read.status), "receive: {}", Describe(read.status));
    connection.in().Commit(read.bytes);
  }
}

// As much of the body as arrives in time, up to `most` bytes: it is read for one word.
Task<std::string> ReadSomeBody(ClientConnection& connection, size_t most, TimePoint deadline) {
  std::string text;
  connection.in().Consume(connection.head_size());
  for (;;) {
    while (!connection.body().done() && !connection.in().empty() && text.size() < most) {
      const auto step = connection.body().Feed(connection.in().view());
      if (!step) co_return text;
      text += step->payload;
      connection.in().Consume(step->consumed);
    }
    if (connection.body().done() || text.size() >= most) co_return text;
    connection.in().Compact();
    const IoResult read = co_await connection.socket().Read(connection.in().room(), deadline);
    if (!read.ok()) co_return text;
    connection.in().Commit(read.bytes);
  }
}

}  // namespace

bool HoldsResponses(const Member& member) {
  switch (member.state) {
    case WorkerState::kReady:
    case WorkerState::kExcluded:
      return true;
    case WorkerState::kUnhealthy:  // while they shut down they may still answer
    case WorkerState::kUnready:
    case WorkerState::kDraining:
    case WorkerState::kOutside:  // a request for a response by its id may name no model
      return member.reported && member.worker->gone_since.load(std::memory_order_relaxed) == 0;
    case WorkerState::kProbing:
      break;
  }
  return false;
}

Task<SearchResult> ResponseSearch::Find(std::string_view id, std::string_view model) {
  if (!CanBeAsked(id)) co_return SearchResult{FoundKind::kAnyone};
  const TimePoint deadline = loop_.now() + kPatience;
  const size_t workers = CountPossible(*fleet_.Current(), model);
  if (workers == 0) co_return SearchResult{FoundKind::kAnyone};
  SearchBoard::Turn turn = board_.Join(id, model, workers, loop_.now());
  if (turn.known) co_return *turn.known;
  if (!turn.leads) {
    auto awaiting = board_.Await(std::move(turn.search), loop_, deadline + kPatience);
    const auto result = co_await awaiting;
    co_return result.value_or(SearchResult{FoundKind::kUnanswered});
  }
  auto asking = AskAll(id, model, deadline);
  const SearchResult result = co_await asking;
  board_.Close(*turn.search, result, loop_.now());
  co_return result;
}

Task<std::shared_ptr<const FleetSnapshot>> ResponseSearch::AwaitProbes(std::string_view model,
                                                                       TimePoint deadline) {
  constexpr Duration kLook = std::chrono::milliseconds(20);
  for (;;) {
    std::shared_ptr<const FleetSnapshot> fleet = fleet_.Current();
    const bool probed = std::ranges::any_of(
        fleet->members(), [&](const Member& member) { return IsProbed(member, model); });
    if (!probed || loop_.now() >= deadline) co_return fleet;
    co_await loop_.Sleep(kLook);
  }
}

Task<SearchResult> ResponseSearch::AskAll(std::string_view id, std::string_view model,
                                          TimePoint deadline) {
  auto probing = AwaitProbes(model, deadline - kPatience / 2);
  const auto fleet = co_await probing;
  const auto race = std::make_shared<Race>();
  race->fleet = fleet;
  race->id = id;
  race->path = std::string("/v1/responses/").append(id);
  race->deadline = deadline;
  for (const Member& member : race->fleet->members()) {
    if (MayHold(member, model)) race->asked.push_back(&member);
  }
  race->verdicts.assign(race->asked.size(), Verdict::kSilent);
  for (size_t i = 0; i < std::min(kAtOnce, race->asked.size()); ++i) {
    ++race->open;
    Spawn(AskSome(shared_from_this(), race));
  }
  while (race->open > 0 && race->holder == nullptr) {
    WakeableWait wait(loop_);
    race->waiting = &wait;
    co_await wait;
    race->waiting = nullptr;
  }
  co_return Conclude(*race, model);
}

// One of several that share the work. A task starts at once, so it may end before it is waited for.
Task<void> ResponseSearch::AskSome(std::shared_ptr<ResponseSearch> self,
                                   std::shared_ptr<Race> race) {
  while (race->next < race->asked.size() && race->holder == nullptr &&
         self->loop_.now() < race->deadline) {
    const size_t at = race->next++;
    auto asking = self->Ask(*race->asked[at]->worker, *race);
    const Verdict verdict = co_await asking;
    race->verdicts[at] = verdict;
    if (verdict != Verdict::kHasIt || race->holder != nullptr) continue;
    race->holder = race->asked[at];
    for (ClientConnection* const other : race->connections) other->Cancel();
  }
  --race->open;
  if (race->open > 0 && race->holder == nullptr) co_return;
  if (WakeableWait* const wait = std::exchange(race->waiting, nullptr)) wait->WakeNow();
}

Task<ResponseSearch::Verdict> ResponseSearch::Ask(const Worker& worker, Race& race) {
  ClientConnection connection(loop_);
  race.connections.push_back(&connection);
  auto asking = AskOn(connection, worker, race);
  const Verdict verdict = co_await asking;
  std::erase(race.connections, &connection);
  co_return verdict;
}

Task<ResponseSearch::Verdict> ResponseSearch::AskOn(ClientConnection& connection,
                                                    const Worker& worker, const Race& race) {
  const std::shared_ptr<const Endpoint> endpoint = directory_.Find(worker.id());
  if (!endpoint) co_return Verdict::kHasNot;
  auto opening = connection.Open(*endpoint, resolver_, race.deadline);
  const auto opened = co_await opening;
  if (!opened) {
    const bool gone = opened.error().cause == NetCause::kRefused;
    co_return gone ? Verdict::kHasNot : Verdict::kSilent;
  }
  std::string request;
  AppendRequestHead(request, "GET", endpoint->Called(), race.path);
  const std::string& key = worker.spec().api_key;
  if (!key.empty()) request.append("authorization: Bearer ").append(key).append("\r\n");
  request += "connection: close\r\n\r\n";
  connection.BeginAnswer();
  const IoResult sent = co_await connection.socket().Write(request, race.deadline);
  if (!sent.ok()) co_return Verdict::kSilent;
  auto heading = ReadHead(connection, race.deadline);
  const auto head = co_await heading;
  if (!head) co_return Verdict::kSilent;
  const int status = connection.head().status;
  if (status == 200) co_return Verdict::kHasIt;
  if (status == 404) {
    auto reading = ReadSomeBody(connection, kMostBody, race.deadline);
    const std::string body = co_await reading;
    co_return body.contains(race.id) ? Verdict::kHasNot : Verdict::kCannotTell;
  }
  const bool busy = status == 408 || status == 429 || status > 501;
  co_return busy || status < 400 ? Verdict::kSilent : Verdict::kCannotTell;
}

SearchResult ResponseSearch::Conclude(const Race& race, std::string_view model) {
  if (race.holder != nullptr) return {FoundKind::kFound, race.holder->worker->id()};
  // Workers that were still being probed have not been asked.
  size_t silent = static_cast<size_t>(std::ranges::count_if(
      race.fleet->members(), [&](const Member& member) { return IsProbed(member, model); }));
  size_t unclear = silent;
  const Member* last = nullptr;
  for (size_t i = 0; i < race.asked.size(); ++i) {
    const Verdict verdict = race.verdicts[i];
    // The silence of a worker that is not healthy would keep everybody waiting.
    const bool ill = race.asked[i]->state == WorkerState::kUnhealthy;
    if (verdict == Verdict::kHasNot || (ill && verdict == Verdict::kSilent)) continue;
    ++unclear;
    silent += verdict == Verdict::kSilent ? 1 : 0;
    last = race.asked[i];
  }
  if (unclear == 0) return {FoundKind::kNowhere};
  if (unclear == 1 && last != nullptr) return {FoundKind::kFound, last->worker->id()};
  return {silent > 0 ? FoundKind::kUnanswered : FoundKind::kAnyone};
}

}  // namespace fathom
