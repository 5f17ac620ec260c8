#include "lab/bench/fleet_rig.h"

#include <fmt/format.h>

#include <algorithm>

#include "router/gateway/debug_pages.h"
#include "router/gateway/gateway_metrics.h"
#include "router/routing/testimony.h"

namespace fathom {
namespace {

constexpr uint64_t kCapacity = 512 * 1024;  // tokens of a rank's cache
constexpr uint64_t kOtherTokens = 4096;     // that every rank holds of other prompts
constexpr uint64_t kMostRequests = 4;       // of a busy rank

TimePoint WallNow() { return std::chrono::steady_clock::now(); }

std::vector<TokenId> MakeTokens(uint64_t count, Random& random) {
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random.Below(128'000));
  return tokens;
}

}  // namespace

FleetRig::FleetRig(const FleetPlan& plan)
    : plan_(plan), tokens_(MakeTokens(plan.tokens, random_)) {}

void FleetRig::Join() {
  for (uint64_t i = 0; i < plan_.ranks; ++i) {
    const std::string url =
        fmt::format("http://10.{}.{}.{}:8000", i >> 16, (i >> 8) & 255, i & 255);
    workers_.push_back(*fleet_.Add({.url = url}));
    Worker& worker = *workers_.back();
    sizes_.Join(workers_.back(), now_);
    Fleet::ModelReport models;
    models.models = {ModelOf(i)};
    fleet_.SetModels(worker.id(), std::move(models));
    sizes_.Serves(worker.id(), {ModelOf(i)}, now_);
    fleet_.SetHealthy(worker.id());
    sizes_.Answered(worker.id(), now_);
    Report(worker);
    // Requests arrive meanwhile, and read each new fleet.
    reader_.Get();
  }
  sizes_.Tick(now_, false);
}

void FleetRig::Report(Worker& worker) {
  EngineReport report{.engine = EngineKind::kVllm, .block_size = kBlock};
  report.kv_tokens = kCapacity;
  report.prefix_caching = true;
  worker.report.Publish(report, now_);
  sizes_.Reported(worker.id(), report, now_);
}

void FleetRig::Prove() {
  for (const auto& worker : workers_) {
    worker->ranks.Know(0);
    statuses_.push_back(feeds_.Open(worker->id(), 0, "tcp://10.0.0.1:5557"));
    statuses_.back()->batches.Set(1);
    sizes_.Followed(*worker, 0, now_);
    sizes_.Proven(*worker, 0, kBlock, now_);
  }
}

void FleetRig::Fill() {
  for (uint64_t i = 0; i < plan_.ranks; ++i) {
    holdings_.push_back(index_.Open({workers_[i]->id().value(), 0}, {.size = kBlock}, seat_));
    StoreBlocks(i, MakeTokens(kOtherTokens, random_));
  }
  // The first ranks of the first model hold less and less of the prompt.
  for (uint64_t i = 0; i < plan_.holders && i * plan_.models < plan_.ranks; ++i) {
    const uint64_t held = plan_.tokens * (plan_.holders - i) / (plan_.holders + 1);
    StoreBlocks(i * plan_.models, std::span(tokens_).first(held / kBlock * kBlock));
  }
  for (uint64_t judged = 0; judged <= plan_.ranks; judged += TrustKeeper::kMostAtOnce) TickTrust();
  for (const auto& worker : workers_) {
    if (plan_.load != FleetPlan::Load::kNone) LoadRank(worker->ranks.only());
  }
}

// A few requests, of which one may wait.
void FleetRig::LoadRank(Rank& rank) {
  const bool whole = plan_.load == FleetPlan::Load::kWholeAnswers;
  const auto kind = whole ? RankLoad::Kind::kSilent : RankLoad::Kind::kAnnounced;
  const uint64_t requests = 1 + random_.Below(kMostRequests);
  for (uint64_t i = 0; i < requests; ++i) {
    auto& [where, stay] = stays_.emplace_back();
    where = &rank;
    rank.load.Enter(stay, kind, 500 + static_cast<double>(random_.Below(4000)),
                    1000 + random_.Below(8000), now_);
    if (i + 1 < requests || random_.Below(2) == 0) rank.load.FirstByte(stay, now_);
  }
}

void FleetRig::StoreBlocks(uint64_t number, std::span<const TokenId> tokens) {
  std::vector<uint64_t> keys;
  KeyChain(tokens, {.size = kBlock}, kKeySeed, keys).All();
  keys.resize(tokens.size() / kBlock);
  holdings_[number]->Store({.hashes = keys, .tokens = tokens}, now_);
}

FleetRig::Cost FleetRig::Route() {
  const RouteQuestion question{.tokens = tokens_, .seed = kKeySeed, .weights = {}};
  const TimePoint begun = WallNow();
  const std::shared_ptr<const FleetSnapshot>& fleet = reader_.Get();
  Roster& roster = rosters_.Of(*fleet, "model-0", now_);
  const auto choice = steering_.Decide(question, roster, now_, Steering::Patience::kMayWait);
  Reservation booked(steering_, choice, question, Reservation::Answer::kStreamed, now_);
  world_.ring.Keep(*choice.decision);
  const Testimony::About about{
      .fleet = *fleet, .model = "model-0", .exact = true, .comparable = true};
  const Testimony testimony(index_.lost(), steering_, choice, question, about, now_);
  const Duration took = WallNow() - begun;
  const Duration lookup = steering_.stages().lookup;
  return {took - lookup, lookup, choice.place.worker != nullptr};
}

std::string FleetRig::Metrics() {
  Exposition out;
  const auto fleet = fleet_.Current();
  CollectWorkerMetrics(*fleet, out);
  CollectWorkerInfo(*fleet, true, out);
  CollectRoutingMetrics(*fleet, world_, 0, now_, out);
  CollectCacheMetrics(*fleet, feeds_, index_, out);
  sizes_.Collect(*fleet, out);
  keeper_.Collect(*fleet, out);
  return out.Text();
}

}  // namespace fathom
