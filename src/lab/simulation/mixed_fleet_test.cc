// Engines with blocks of different sizes behind one index, in virtual time with random faults.
//
// Each seed is a life, as in kv_simulation_test, but the engines speak different dialects, cut the
// same prompts into blocks of different sizes, and may come back from a restart with another size.
// Every prompt is asked of every engine: what the index claims, in tokens, is what that engine
// holds. In the end, when all ranks are idle, each prompt must go to where most of its tokens are.
//
//   FATHOM_SIMULATION_SEED=17      one life
//   FATHOM_SIMULATION_SEEDS=100000 so many
#include <gtest/gtest.h>

#include "lab/simulation/kv_simulation.h"
#include "router/routing/steering.h"
#include "testing/sanitizers.h"

namespace fathom {
namespace {

constexpr size_t kPromptsKept = 48;
constexpr TokenId kFamilies = 6;

struct Dialect {
  MockedEngine engine;
  std::string_view wire;
  bool salts;
};
constexpr Dialect kDialects[] = {
    {MockedEngine::kVllm, "0.20", true},     {MockedEngine::kVllm, "0.32", true},
    {MockedEngine::kSglang, "0.5.9", false}, {MockedEngine::kSglang, "0.5.23", true},
    {MockedEngine::kTrtllm, "poll", false},  {MockedEngine::kTrtllm, "stream", false},
};
constexpr Dialect kPolled = kDialects[4];

// What a fleet is made of, and how long it lives.
struct Mixture {
  std::vector<uint32_t> sizes;
  std::vector<Dialect> dialects;  // of the engine with that size; none: any, in any number
  size_t longest = 60;            // prompt
  size_t capacity = 150;          // tokens of the smallest cache
  int steps = 150;
};

const Mixture kSmall = {.sizes = {1, 4, 8, 12}};
// SGLang, vLLM, TensorRT-LLM and a hybrid model, with the blocks that they have by default.
const Mixture kReal = {.sizes = {1, 16, 32, 2096},
                       .dialects = {kDialects[3], kDialects[1], kPolled, kDialects[1]},
                       .longest = 3 * 2096,
                       .capacity = 6 * 2096,
                       .steps = 40};

class MixedLife {
 public:
  MixedLife(const Mixture& mixture, uint64_t seed)
      : mixture_(mixture), seed_(seed), random_(seed), faults_(SimulatedFaults::Some(random_)) {
    const bool chosen = !mixture.dialects.empty();
    const size_t engines = chosen ? mixture.dialects.size() : 2 + random_.Below(3);
    for (size_t i = 0; i < engines; ++i) {
      AddEngine(chosen ? mixture.dialects[i] : kDialects[random_.Below(std::size(kDialects))],
                chosen ? mixture.sizes[i] : AnySize());
    }
  }

  void Run() {
    for (step_ = 0; step_ < mixture_.steps && !testing::Test::HasFailure(); ++step_) {
      for (auto& engine : engines_) Turn(*engine);
      if (random_.Below(10) == 0) CompareAll();
    }
    faults_ = {};
    for (auto& engine : engines_) TurnOver(*engine);
    // Prompts that many share are there again.
    for (size_t i = 0; i < 2 * kFamilies; ++i) {
      FollowedEngine& engine = *engines_[random_.Below(engines_.size())];
      Submit(engine, MakeRequest(static_cast<TokenId>(random_.Below(kFamilies))));
      Rest(engine);
    }
    for (auto& engine : engines_) {
      Expect(engine->CaughtUp() ? "" : "did not come to rest: " + engine->Whereabouts(), *engine);
      Compare(*engine, true);
    }
    for (const auto& prompt : prompts_) Steer(prompt);
  }

  size_t close_calls() const { return close_calls_; }

 private:
  uint32_t AnySize() { return mixture_.sizes[random_.Below(mixture_.sizes.size())]; }

  void AddEngine(const Dialect& dialect, uint32_t size) {
    const size_t number = engines_.size() + 1;
    const size_t capacity = mixture_.capacity + random_.Below(2 * mixture_.capacity);
    const EngineOptions options{
        .block_size = size,
        .num_blocks = static_cast<uint32_t>(1 + capacity / size),
        .max_num_seqs = 4,
        .max_num_batched_tokens = static_cast<uint32_t>(16 + random_.Below(mixture_.longest)),
        .seed = random_.Next()};
    const auto wire = EventWire::Create(dialect.engine, dialect.wire, false);
    if (wire->polled()) {
      engines_.push_back(std::make_unique<PolledEngine>(router_, random_, options, number));
    } else {
      engines_.push_back(std::make_unique<StreamedEngine>(router_, random_, options, number, *wire,
                                                          dialect.salts));
    }
    Worker& worker = engines_.back()->worker();
    places_.push_back({&worker, &worker.ranks.only()});
  }

  // Prompts of a family share beginnings of any length, whichever engine they go to.
  EngineRequest MakeRequest(TokenId family) {
    EngineRequest request;
    const size_t length = 1 + random_.Below(mixture_.longest);
    const size_t changed_from = length / 2 + random_.Below(length);
    for (size_t i = 0; i < length; ++i) {
      const TokenId changed = i < changed_from ? 0 : static_cast<TokenId>(1 + random_.Below(2));
      request.prompt.push_back(family * 100'000 + static_cast<TokenId>(i) * 3 + changed);
    }
    request.max_tokens = static_cast<uint32_t>(1 + random_.Below(6));
    return request;
  }

  void Submit(FollowedEngine& engine, EngineRequest request) {
    if (engine.can_say_salt() && random_.Below(5) == 0) request.salt = "s";
    if (prompts_.size() == kPromptsKept) prompts_.pop_front();
    prompts_.push_back(request.prompt);
    (void)engine.engine().core().Submit(std::move(request));
  }

  void Turn(FollowedEngine& engine) {
    if (random_.Below(2) == 0) {
      Submit(engine, MakeRequest(static_cast<TokenId>(random_.Below(kFamilies))));
    }
    engine.Turn(faults_, mixture_.sizes);
  }

  // Until the engine has nothing to do and the router knows it.
  void Rest(FollowedEngine& engine) {
    for (int i = 0; i < 2000; ++i) {
      const EngineCore& core = engine.engine().core();
      if (core.running() + core.waiting() == 0 && engine.CaughtUp()) return;
      engine.Turn(faults_, mixture_.sizes);
    }
  }

  // Until nothing is left of what the router may have missed.
  void TurnOver(FollowedEngine& engine) {
    Rest(engine);
    const size_t capacity = engine.engine().core().capacity_tokens();
    const size_t length = 2 * engine.engine().block_size() + mixture_.longest / 4;
    for (size_t tokens = 0; tokens < 3 * capacity; tokens += length) {
      EngineRequest request = MakeRequest(next_fresh_++);
      request.prompt.resize(length, 7);
      Submit(engine, std::move(request));
      Rest(engine);
    }
  }

  void CompareAll() {
    for (auto& engine : engines_) {
      if (engine->CaughtUp()) Compare(*engine, engine->exact());
    }
  }

  void Compare(FollowedEngine& engine, bool exactly) {
    const SimulatedEngine& truth = engine.engine();
    for (const auto& prompt : prompts_) {
      Expect(engine.Complaint(prompt, "", truth.core().CachedTokens(prompt), exactly), engine);
    }
    // And some that have a salt, which only the engine that they went to knows.
    const size_t stride = 1 + truth.known_blocks() / 8;
    for (const auto& prompt : truth.Prompts(random_.Below(stride), stride)) {
      Expect(engine.Complaint(prompt.tokens, prompt.salt, prompt.held, exactly), engine);
    }
    if (truth.known_blocks() > 1000) engine.engine().ForgetPrompts();
  }

  // Everybody is idle: nothing counts but how much of the prompt is there.
  void Steer(const std::vector<TokenId>& prompt) {
    const RouteQuestion question{.tokens = prompt, .seed = kKeySeed, .weights = {}};
    const auto choice =
        steering_.Decide(question, places_, TimePoint{}, Steering::Patience::kMustDecide);
    size_t deepest = 0, chosen = 0;
    for (size_t i = 0; i < engines_.size(); ++i) {
      const size_t held = engines_[i]->engine().core().CachedTokens(prompt);
      deepest = std::max(deepest, held);
      if (places_[i].worker == choice.place.worker) chosen = held;
    }
    close_calls_ += IsCloseCall(prompt, deepest) ? 1 : 0;
    EXPECT_EQ(chosen, deepest) << "seed " << seed_ << ": " << choice.place.worker->spec().url
                               << " was chosen for a prompt of " << prompt.size();
  }

  // Whether somebody holds more blocks than the one who holds the most tokens, but fewer tokens.
  bool IsCloseCall(const std::vector<TokenId>& prompt, size_t deepest) const {
    size_t fewest = SIZE_MAX, others = 0;  // blocks
    for (const auto& engine : engines_) {
      const size_t held = engine->engine().core().CachedTokens(prompt);
      const size_t blocks = held / engine->engine().block_size();
      if (held == deepest) fewest = std::min(fewest, blocks);
      if (held < deepest) others = std::max(others, blocks);
    }
    return others > fewest;
  }

  void Expect(const std::string& complaint, FollowedEngine& engine) {
    EXPECT_EQ(complaint, "") << "seed " << seed_ << ", step " << step_ << ", "
                             << engine.worker().spec().url
                             << "\nagain with FATHOM_SIMULATION_SEED=" << seed_;
  }

  const Mixture& mixture_;
  const uint64_t seed_;
  Random random_;
  SimulatedFaults faults_;
  SimulatedRouter router_;
  std::vector<std::unique_ptr<FollowedEngine>> engines_;
  std::vector<Place> places_;
  SteeringWorld world_{SteeringOptions{}, 1};
  Steering steering_{world_, DepthsOf(&router_.index), 1};
  std::deque<std::vector<TokenId>> prompts_;  // the last ones
  TokenId next_fresh_ = kFamilies;
  size_t close_calls_ = 0;
  int step_ = 0;
};

void Live(const Mixture& mixture, uint64_t seeds) {
  if (const uint64_t seed = NumberFromEnvironment("FATHOM_SIMULATION_SEED", 0); seed != 0) {
    MixedLife(mixture, seed).Run();
    return;
  }
  size_t close_calls = 0;
  for (uint64_t seed = 1; seed <= seeds && !testing::Test::HasFailure(); ++seed) {
    MixedLife life(mixture, seed);
    life.Run();
    close_calls += life.close_calls();
  }
  // Or counting blocks would have chosen as well.
  EXPECT_GT(close_calls, 0u);
}

TEST(MixedFleet, TheIndexEqualsTheCachesOfEveryBlockSizeAfterAnyFaults) {
  Live(kSmall, NumberFromEnvironment("FATHOM_SIMULATION_SEEDS", kSanitized ? 100 : 1000));
}

TEST(MixedFleet, TheIndexEqualsTheCachesWithTheBlocksThatEnginesReallyHave) {
  Live(kReal, kSanitized ? 2 : 10);
}

}  // namespace
}  // namespace fathom
