// Engines, their event streams and the index, in virtual time with random faults.
//
// Each seed is a life: engines with small caches serve random prompts, their batches get lost, late
// or repeated, connections break, engines restart, replays fail or come too late. Whenever a rank
// has heard everything its engine published, the index must not claim a block that the engine does
// not hold, and if nothing was lost for good since the engine's first batch it must claim exactly
// what the engine holds. In the end the faults stop, the caches turn over, and every rank must be
// exact.
//
// In some lives the router starts again now and then, and asks another router that follows the same
// engines for what it knows: a snapshot that is late, old, of another process or damaged must not
// make a difference.
//
//   FATHOM_SIMULATION_SEED=17      one life, told step by step on failure
//   FATHOM_SIMULATION_SEEDS=100000 so many
#include "lab/simulation/kv_simulation.h"

#include <gtest/gtest.h>

#include "testing/sanitizers.h"

namespace fathom {
namespace {

constexpr uint32_t kBlock = 4;
constexpr int kSteps = 250;
constexpr std::string_view kWires[] = {"0.20", "0.22", "0.24", "0.26", "0.32"};

constexpr uint64_t kSeeds = kSanitized ? 150 : 2000;

class Life {
 public:
  explicit Life(uint64_t seed) : seed_(seed), random_(seed) {
    const size_t engines = 1 + random_.Below(3);
    for (size_t i = 0; i < engines; ++i) {
      const EngineOptions options{
          .block_size = kBlock,
          .num_blocks = static_cast<uint32_t>(12 + random_.Below(40)),
          .max_num_seqs = 4,
          .max_num_batched_tokens = static_cast<uint32_t>(16 + random_.Below(64)),
          .seed = random_.Next()};
      const std::string_view version = kWires[random_.Below(std::size(kWires))];
      const auto wire = EventWire::Create(MockedEngine::kVllm, version, random_.Below(2) == 0);
      engines_.push_back(
          std::make_unique<StreamedEngine>(router_, random_, options, i + 1, *wire, true));
    }
    faults_ = SimulatedFaults::Some(random_);
    has_peers_ = random_.Below(2) == 0;
    for (auto& engine : engines_) {
      if (has_peers_) engine->AddPeer();
    }
  }

  void Run() {
    for (step_ = 0; step_ < kSteps && !testing::Test::HasFailure(); ++step_) {
      for (auto& engine : engines_) Turn(*engine);
    }
    faults_ = {};
    TurnOver();
    for (auto& engine : engines_) {
      Expect(engine->CaughtUp() ? "" : "did not come to rest: " + engine->Whereabouts(), *engine);
      Compare(*engine, true, true);
    }
  }

  // Snapshots that were taken up.
  uint64_t adopted() const {
    uint64_t adopted = 0;
    for (const auto& engine : engines_) adopted += engine->adopted();
    return adopted;
  }

 private:
  // Prompts share beginnings, so that hits, copies and evictions happen.
  EngineRequest MakeRequest(bool fresh) {
    EngineRequest request;
    const TokenId family = fresh ? next_fresh_++ : static_cast<TokenId>(random_.Below(6));
    const size_t length = 1 + random_.Below(7 * kBlock);
    for (size_t i = 0; i < length; ++i) {
      const bool changed = !fresh && i > 2 * kBlock && random_.Below(20) == 0;
      request.prompt.push_back(changed ? static_cast<TokenId>(random_.Below(3))
                                       : family * 1000 + static_cast<TokenId>(i));
    }
    request.max_tokens = static_cast<uint32_t>(1 + random_.Below(6));
    if (!fresh && random_.Below(5) == 0) request.salt = "s" + std::to_string(random_.Below(2));
    return request;
  }

  void Turn(StreamedEngine& engine) {
    if (has_peers_ && random_.Below(40) == 0) engine.RestartRouter();
    if (random_.Below(2) == 0) (void)engine.engine().core().Submit(MakeRequest(false));
    engine.Turn(faults_, kSizes);
    if (random_.Below(4) == 0 && engine.CaughtUp()) Compare(engine, engine.exact(), false);
  }

  // Until the engine has nothing to do and the router knows it.
  void Rest(FollowedEngine& engine) {
    for (int i = 0; i < 2000; ++i) {
      const EngineCore& core = engine.engine().core();
      if (core.running() + core.waiting() == 0 && engine.CaughtUp()) return;
      engine.Turn(faults_, kSizes);
    }
  }

  void TurnOver() {
    for (auto& engine : engines_) {
      Rest(*engine);
      const size_t capacity = engine->engine().core().pool().usable_blocks();
      for (size_t blocks = 0; blocks < 3 * capacity; blocks += 3) {
        EngineRequest request = MakeRequest(true);
        request.prompt.resize(3 * kBlock + 1, 7);
        (void)engine->engine().core().Submit(request);
        Rest(*engine);
      }
    }
  }

  void Compare(FollowedEngine& engine, bool exactly, bool everything) {
    // All of them would take too long every time.
    const size_t known = engine.engine().known_blocks();
    const size_t stride = everything ? 1 : 1 + known / 4;
    for (const auto& prompt : engine.engine().Prompts(random_.Below(stride), stride)) {
      Expect(engine.Complaint(prompt.tokens, prompt.salt, prompt.held, exactly), engine);
    }
    if (known > 400) engine.engine().ForgetPrompts();
  }

  void Expect(const std::string& complaint, FollowedEngine& engine) {
    EXPECT_EQ(complaint, "") << "seed " << seed_ << ", step " << step_ << ", "
                             << engine.worker().spec().url
                             << "\nagain with FATHOM_SIMULATION_SEED=" << seed_;
  }

  static constexpr uint32_t kSizes[] = {kBlock};

  const uint64_t seed_;
  Random random_;
  SimulatedRouter router_;
  std::vector<std::unique_ptr<StreamedEngine>> engines_;
  bool has_peers_ = false;
  SimulatedFaults faults_;
  TokenId next_fresh_ = 100;
  int step_ = 0;
};

TEST(KvSimulation, TheIndexEqualsTheCachesAfterAnyFaults) {
  if (const uint64_t seed = NumberFromEnvironment("FATHOM_SIMULATION_SEED", 0); seed != 0) {
    Life(seed).Run();
    return;
  }
  const uint64_t seeds = NumberFromEnvironment("FATHOM_SIMULATION_SEEDS", kSeeds);
  uint64_t adopted = 0;
  for (uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) {
    Life life(seed);
    life.Run();
    adopted += life.adopted();
  }
  EXPECT_GT(adopted, seeds);
}

}  // namespace
}  // namespace fathom
