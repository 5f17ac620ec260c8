#include "lab/replay/virtual_router.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace fathom {
namespace {

constexpr std::array<std::string_view, kReplayPolicies> kNames = {
    "round-robin", "least-loaded", "prefix-hash", "text", "approximate", "kv", "oracle"};

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

VirtualRouter::VirtualRouter(const VirtualRouterOptions& options, uint64_t number,
                             std::span<VirtualEngine* const> engines, VirtualIndex& index)
    : options_(options),
      engines_(engines.begin(), engines.end()),
      index_(index),
      fleet_({}, 2 * engines.size()),
      workers_(engines.size()),
      away_(engines.size(), false),
      policy_(ModeOf(options.policy), options.seed + number, turn_),
      world_(SteeringOf(options), options.seed),
      steering_(world_, Depths(), options.seed + number) {
  if (options.policy == ReplayPolicy::kKv && options.trust) trust_.emplace(*options.trust);
  for (size_t i = 0; i < engines_.size(); ++i) Employ(i);
  FindPlaces();
}

void VirtualRouter::Employ(size_t engine) {
  auto worker = fleet_.Add(engines_[engine]->spec());
  CHECK(worker);
  workers_[engine] = *std::move(worker);
  workers_[engine]->report.Publish(engines_[engine]->report(), TimePoint{});
  fleet_.SetModels(workers_[engine]->id(), {.models = {}, .cards = {}, .any_model = true});
  fleet_.SetHealthy(workers_[engine]->id());
  if (trust_) index_.path(engine).TellTo(workers_[engine]->ranks.only().witness);
}

void VirtualRouter::FindPlaces() {
  present_.clear();
  places_.clear();
  engine_of_.clear();
  for (size_t i = 0; i < engines_.size(); ++i) {
    if (away_[i]) continue;
    Rank& rank = workers_[i]->ranks.only();
    present_.push_back(i);
    places_.push_back({workers_[i].get(), &rank});
    engine_of_.emplace(&rank, i);
  }
  roster_.Assign(places_, Roster::Blocks::kUsed);
  snapshot_ = fleet_.Current();
}

void VirtualRouter::Replace(size_t engine, VirtualEngine& by) {
  const bool same_worker = engines_[engine]->number() == by.number();
  engines_[engine] = &by;
  if (!same_worker) {
    fleet_.Remove(workers_[engine]->id());
    gone_.push_back(std::move(workers_[engine]));
    Employ(engine);
  }
  fleet_.SetUnhealthy(workers_[engine]->id(), "it is away");
  away_[engine] = true;
  FindPlaces();
}

void VirtualRouter::Return(size_t engine) {
  fleet_.SetHealthy(workers_[engine]->id());
  away_[engine] = false;
  FindPlaces();
}

std::unique_ptr<DepthSource> VirtualRouter::Depths() {
  switch (options_.policy) {
    case ReplayPolicy::kKv:
      return DepthsOf(&index_.index());
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
  ++workers_[visit->engine]->in_flight;
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
  roster_.StartTurn();
  const Steering::Choice choice =
      steering_.Decide(question, roster_, now, Steering::Patience::kMayWait);
  if (choice.decision == nullptr) return std::nullopt;
  Visit visit{.engine = engine_of_.at(choice.place.rank),
              .expected = choice.decision->price().reused,
              .booked = std::make_unique<Reservation>(steering_, choice, question,
                                                      Reservation::Answer::kStreamed, now)};
  if (by_text) {
    visit.claim = std::make_unique<TextClaim>(*world_.texts, choice, tokens.size(), true);
    visit.text.assign(tokens.begin(), tokens.end());
    visit.prompt_tokens = tokens.size();
  }
  if (trust_) {
    const Testimony::About about{.fleet = *snapshot_, .exact = true, .comparable = true};
    visit.testimony =
        std::make_unique<Testimony>(index_.index().lost(), steering_, choice, question, about, now);
  }
  return visit;
}

void VirtualRouter::FirstByte(Visit& visit, TimePoint now) {
  if (visit.booked) visit.booked->FirstByte(now);
  if (visit.testimony) visit.testimony->FirstByte(now);
  if (visit.claim) visit.claim->FirstByte(std::exchange(visit.text, {}), kKeySeed, now);
}

void VirtualRouter::End(Visit& visit, std::optional<uint32_t> cached, TimePoint now) {
  --workers_[visit.engine]->in_flight;
  if (visit.booked) visit.booked->Release(now);
  if (visit.testimony) visit.testimony->End(cached, now);
  visit.booked.reset();
  if (visit.claim) visit.claim->End(visit.prompt_tokens, cached);
  visit.testimony.reset();
  visit.claim.reset();
}

void VirtualRouter::LookAtTrust(TimePoint now) {
  if (!trust_ || now < trust_->next()) return;
  index_.index().lost()->SetNow(now);
  for (size_t i = 0; i < engines_.size(); ++i) {
    trust_->Look(*engines_[i], workers_[i]->ranks.only().witness, index_.path(i), now);
  }
  trust_->Looked(now);
}

bool VirtualRouter::AllBooksEmpty(TimePoint now) const {
  return std::ranges::all_of(workers_, [&](const std::shared_ptr<Worker>& worker) {
    return worker->in_flight == 0 && worker->ranks.only().load.Look(now, 1) == RankLoad::View{};
  });
}

}  // namespace fathom
