#include "lab/replay/virtual_router.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace fathom {
namespace {

constexpr std::array<std::string_view, kReplayPolicies> kNames = {
    "round-robin", "least-loaded", "prefix-hash", "text", "approximate", "kv", "oracle"};
constexpr size_t kIndexBytes = size_t{8} << 30;
constexpr size_t kLostBytes = size_t{64} << 20;

RouterMode ModeOf(ReplayPolicy policy) {
  switch (policy) {
    case ReplayPolicy::kRoundRobin:
      return RouterMode::kRoundRobin;
    case ReplayPolicy::kLeastLoaded:
      return RouterMode::kLeastLoaded;
    case ReplayPolicy::kPrefixHash:
      return RouterMode::kPrefixHash;
    case ReplayPolicy::kText:
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
  steering.by_text = options.policy == ReplayPolicy::kText;
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
      away_(engines.size(), false),
      index_(kIndexBytes, options.seed, options.trust ? kLostBytes : 0),
      seat_(index_.epochs()),
      policy_(ModeOf(options.policy), options.seed, turn_),
      world_(SteeringOf(options), options.seed),
      steering_(world_, Depths(), options.seed) {
  if (listens() && options.trust) trust_.emplace(*options.trust);
  for (size_t i = 0; i < engines_.size(); ++i) paths_.push_back(PathOf(i));
  FindPlaces();
}

std::unique_ptr<EventPath> VirtualRouter::PathOf(size_t engine) {
  const Place place = engines_[engine]->place();
  const uint32_t block_size = engines_[engine]->core().options().block_size;
  const EventFaults faults =
      engine < options_.faults.size() ? options_.faults[engine] : EventFaults{};
  auto path = std::make_unique<EventPath>(index_, place.label(), block_size, seat_,
                                          options_.event_delay, faults);
  if (trust_) path->TellTo(place.rank->witness);
  return path;
}

void VirtualRouter::FindPlaces() {
  present_.clear();
  places_.clear();
  std::vector<Member> members;
  for (size_t i = 0; i < engines_.size(); ++i) {
    const auto state = away_[i] ? WorkerState::kUnhealthy : WorkerState::kReady;
    members.push_back({.worker = engines_[i]->shared_worker(), .state = state, .any_model = true});
    if (away_[i]) continue;
    present_.push_back(i);
    places_.push_back(engines_[i]->place());
  }
  fleet_ = std::make_shared<FleetSnapshot>(std::move(members));
}

void VirtualRouter::Replace(size_t engine, VirtualEngine& by) {
  const bool same_worker = engines_[engine]->number() == by.number();
  engines_[engine] = &by;
  if (same_worker) {
    paths_[engine]->Restart();
  } else {
    paths_[engine] = PathOf(engine);
  }
  away_[engine] = true;
  FindPlaces();
}

void VirtualRouter::Return(size_t engine) {
  away_[engine] = false;
  FindPlaces();
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
  if (places_.empty()) return std::nullopt;
  const auto begun = std::chrono::steady_clock::now();
  auto visit = WantsTokens(policy_.mode()) ? RouteByPrompt(tokens, queued, now) : RouteByLoad();
  if (!visit) return visit;
  times_.push_back(std::chrono::steady_clock::now() - begun);
  ++engines_[visit->engine]->worker().in_flight;
  return visit;
}

std::optional<VirtualRouter::Visit> VirtualRouter::RouteByLoad() {
  candidates_.clear();
  for (const Place& place : places_) {
    candidates_.push_back({place.worker->id(), place.worker->in_flight_in_all()});
  }
  return Visit{.engine = present_[policy_.Decide(candidates_)]};
}

std::optional<VirtualRouter::Visit> VirtualRouter::RouteByPrompt(std::span<const TokenId> tokens,
                                                                 size_t queued, TimePoint now) {
  // A text in which every token has four bytes: its values are the tokens.
  const bool by_text = options_.policy == ReplayPolicy::kText;
  const RouteQuestion question{.tokens = tokens,
                               .seed = kKeySeed,
                               .by_text = by_text,
                               .prompt_tokens = static_cast<uint32_t>(tokens.size()),
                               .queued = queued,
                               .weights = options_.steering.weights};
  const Steering::Choice choice =
      steering_.Decide(question, places_, now, Steering::Patience::kMayWait);
  if (choice.decision == nullptr) return std::nullopt;
  const auto at = std::ranges::find(places_, choice.place.rank, &Place::rank);
  Visit visit{.engine = present_[static_cast<size_t>(at - places_.begin())],
              .expected = choice.decision->price().reused,
              .booked = std::make_unique<Reservation>(steering_, choice, question,
                                                      Reservation::Answer::kStreamed, now)};
  if (by_text) {
    visit.claim = std::make_unique<TextClaim>(*world_.texts, choice, tokens.size(), true);
    visit.text.assign(tokens.begin(), tokens.end());
    visit.prompt_tokens = tokens.size();
  }
  if (trust_) {
    const Testimony::About about{.fleet = *fleet_, .exact = true, .comparable = true};
    visit.testimony =
        std::make_unique<Testimony>(index_.lost(), steering_, choice, question, about, now);
  }
  return visit;
}

void VirtualRouter::FirstByte(Visit& visit, TimePoint now) {
  if (visit.booked) visit.booked->FirstByte(now);
  if (visit.testimony) visit.testimony->FirstByte(now);
  if (visit.claim) visit.claim->FirstByte(std::exchange(visit.text, {}), kKeySeed, now);
}

void VirtualRouter::End(Visit& visit, std::optional<uint32_t> cached, TimePoint now) {
  --engines_[visit.engine]->worker().in_flight;
  if (visit.booked) visit.booked->Release(now);
  if (visit.testimony) visit.testimony->End(cached, now);
  visit.booked.reset();
  if (visit.claim) visit.claim->End(visit.prompt_tokens, cached);
  visit.testimony.reset();
  visit.claim.reset();
}

void VirtualRouter::LookAtTrust(TimePoint now) {
  if (!trust_ || now < trust_->next()) return;
  index_.lost()->SetNow(now);
  for (size_t i = 0; i < engines_.size(); ++i) trust_->Look(*engines_[i], *paths_[i], now);
  trust_->Looked(now);
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
