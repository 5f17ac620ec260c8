// How does a fleet of this size come up and route, with everything of the router but its sockets?
//
// Workers of one rank each serve one of several models, and take part in the block-size agreement,
// the trust and the index as those of a running router do. Every rank has a load and a cache of its
// own; a few ranks of the first model hold a part of the one prompt that is routed.
//
// Threads  One.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/random.h"
#include "metrics/exposition.h"
#include "router/fleet/trust_keeper.h"
#include "router/gateway/rosters.h"
#include "router/routing/reservation.h"

namespace fathom {

struct FleetPlan {
  uint64_t ranks = 8;
  uint64_t models = 1;
  uint64_t tokens = 2048;  // of the prompt
  uint64_t holders = 4;    // ranks that hold a part of it
  enum class Load : uint8_t { kNone, kStreams, kWholeAnswers };
  Load load = Load::kStreams;  // the requests of every rank; whole answers show no first token
};

class FleetRig {
 public:
  explicit FleetRig(const FleetPlan& plan);

  // All workers become members, are healthy, and report their models and block sizes.
  void Join();
  // An event of every worker proves its block size.
  void Prove();
  // Ranks get their load, and the index its blocks.
  void Fill();

  struct Cost {
    Duration decision{};  // from the question to the books, without the lookup
    Duration lookup{};    // of the index and the sent prompts
    bool right = false;   // the best holder was chosen, or an idle fleet's
  };
  // Routes the prompt once, and takes it back.
  Cost Route();

  // What a router does four times a second, and ten times a second, without requests.
  void TickTrust() { keeper_.Tick(now_ += TrustKeeper::kInterval); }
  void TickSizes() { sizes_.Tick(now_, false); }
  // The page of metrics.
  std::string Metrics();

 private:
  static constexpr uint32_t kBlock = 16;

  std::string ModelOf(uint64_t worker) const {
    return "model-" + std::to_string(worker % plan_.models);
  }
  void Report(Worker& worker);
  void LoadRank(Rank& rank);
  void StoreBlocks(uint64_t number, std::span<const TokenId> tokens);

  const FleetPlan plan_;
  TimePoint now_ = std::chrono::steady_clock::now();
  Random random_{1};
  Log log_{2, LogLevel::kOff};
  Fleet fleet_{BreakerOptions{}};
  BlockSizes sizes_{BlockSizeRules{}, true, fleet_, log_, now_};
  FeedBoard feeds_;
  TrustKeeper keeper_{TrustRules{}, fleet_, sizes_, feeds_, TokenPieces{}, log_};
  CacheIndex index_{size_t{4} << 30, 1, size_t{16} << 20};
  Epochs::Seat seat_{index_.epochs()};
  SteeringWorld world_{SteeringOptions{}, 1};
  Steering steering_{world_, DepthsOf(&index_), 1};
  FleetReader reader_{fleet_};
  std::vector<TokenId> tokens_;
  std::vector<std::shared_ptr<Worker>> workers_;
  std::vector<std::shared_ptr<FeedStatus>> statuses_;
  std::vector<std::unique_ptr<RankHoldings>> holdings_;
  std::deque<std::pair<Rank*, RankLoad::Stay>> stays_;
  Rosters rosters_;
};

}  // namespace fathom
