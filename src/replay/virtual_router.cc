#include "replay/virtual_router.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace fathom {
namespace {

constexpr std::array<std::string_view, kReplayPolicies> kNames = {
    "round-robin", "least-loaded", "prefix-hash", "approximate", "kv", "oracle"};
constexpr size_t kIndexBytes = size_t{8} << 30;

RouterMode ModeOf(ReplayPolicy policy) {
  switch (policy) {
    case ReplayPolicy::kRoundRobin:
      return RouterMode::kRoundRobin;
    case ReplayPolicy::kLeastLoaded:
      return RouterMode::kLeastLoaded;
    case ReplayPolicy::kPrefixHash:
      return RouterMode::kPrefixHash;
    case ReplayPolicy::kApproximate:
    case ReplayPolicy::kKv:
    case ReplayPolicy::kOracle:
      return RouterMode::kKv;
  }
  std::unreachable();
}

SteeringOptions SteeringOf(const VirtualRouterOptions& options) {
  SteeringOptions steering = options.steering;
  steering.mode = ModeOf(options.policy);
  steering.events = options.policy != ReplayPolicy::kApproximate;
  // What an oracle sees in a cache it need not believe. What is still being prefilled is in none.
  if (options.policy == ReplayPolicy::kOracle) steering.belief_outlives = Duration::zero();
  return steering;
}

}  // namespace

std::optional<ReplayPolicy> ParseReplayPolicy(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<ReplayPolicy>(found - kNames.begin());
}

std::string_view Name(ReplayPolicy policy) { return kNames[static_cast<size_t>(policy)]; }

VirtualRouter::VirtualRouter(const VirtualRouterOptions& options,
                             std::span<VirtualEngine* const> engines)
    : options_(options),
      engines_(engines.begin(), engines.end()),
      index_(kIndexBytes, options.seed),
      seat_(index_.epochs()),
      chooser_(ModeOf(options.policy), options.seed, turn_),
      world_(SteeringOf(options), options.seed),
      steering_(world_, Depths(), options.seed) {
  for (VirtualEngine* const engine : engines_) {
    const Place place = engine->place();
    places_.push_back(place);
    paths_.push_back(std::make_unique<EventPath>(
        index_, place.label(), engine->core().options().block_size, seat_, options.event_delay));
  }
}

std::unique_ptr<DepthSource> VirtualRouter::Depths() {
  switch (options_.policy) {
    case ReplayPolicy::kKv:
      return DepthsOf(&index_);
    case ReplayPolicy::kApproximate:
      return DepthsOf(&world_.approximate->index());
    case ReplayPolicy::kOracle:
      return std::make_unique<TrueDepths>(engines_);
    default:
      return DepthsOf(nullptr);
  }
}

std::optional<VirtualRouter::Visit> VirtualRouter::Route(std::span<const TokenId> tokens,
                                                         size_t queued, TimePoint now) {
  const auto begun = std::chrono::steady_clock::now();
  auto visit = WantsTokens(chooser_.mode()) ? RouteByPrompt(tokens, queued, now) : RouteByLoad();
  if (!visit) return visit;
  times_.push_back(std::chrono::steady_clock::now() - begun);
  ++engines_[visit->engine]->worker().in_flight;
  return visit;
}

std::optional<VirtualRouter::Visit> VirtualRouter::RouteByLoad() {
  candidates_.clear();
  for (VirtualEngine* const engine : engines_) {
    candidates_.push_back({engine->worker().id(), engine->worker().in_flight});
  }
  return Visit{.engine = chooser_.Choose(candidates_), .expected = 0, .booked = nullptr};
}

std::optional<VirtualRouter::Visit> VirtualRouter::RouteByPrompt(std::span<const TokenId> tokens,
                                                                 size_t queued, TimePoint now) {
  const RouteQuestion question{.tokens = tokens,
                               .seed = kKeySeed,
                               .prompt_tokens = static_cast<uint32_t>(tokens.size()),
                               .queued = queued,
                               .weights = options_.steering.weights};
  const Steering::Choice choice =
      steering_.Decide(question, places_, now, Steering::Patience::kMayWait);
  if (choice.decision == nullptr) return std::nullopt;
  const auto at = std::ranges::find(places_, choice.place.rank, &Place::rank);
  return Visit{.engine = static_cast<size_t>(at - places_.begin()),
               .expected = choice.decision->price().reused,
               .booked = std::make_unique<Reservation>(steering_, choice, question,
                                                       Reservation::Answer::kStreamed, now)};
}

void VirtualRouter::End(Visit& visit, TimePoint now) {
  --engines_[visit.engine]->worker().in_flight;
  if (visit.booked) visit.booked->Release(now);
  visit.booked.reset();
}

void VirtualRouter::Hear(size_t engine, std::vector<KvEvent>& events, TimePoint now) {
  if (listens()) paths_[engine]->Send(events, now);
}

void VirtualRouter::DeliverEvents(TimePoint now) {
  for (const auto& path : paths_) path->Deliver(now);
}

TimePoint VirtualRouter::next_event() const {
  TimePoint next = kNever;
  for (const auto& path : paths_) next = std::min(next, path->next());
  return next;
}

bool VirtualRouter::AllBooksEmpty(TimePoint now) const {
  return std::ranges::all_of(engines_, [&](VirtualEngine* engine) {
    const Place place = engine->place();
    return place.worker->in_flight == 0 && place.rank->load.Look(now, 1) == RankLoad::View{};
  });
}

}  // namespace fathom
