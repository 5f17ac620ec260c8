#include "lab/replay/virtual_engine.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "lab/replay/event_path.h"
#include "lab/replay/trace.h"

namespace fathom {
namespace {

using std::chrono::seconds;

class VirtualEngineTest : public testing::Test {
 protected:
  static std::unique_ptr<TimingProfile> Profile() {
    auto profile = TimingProfile::Named("polynomial");
    CHECK(profile);
    return *std::move(profile);
  }

  static EngineOptions Options() {
    EngineOptions options;
    options.block_size = 64;
    options.num_blocks = 200;
    return options;
  }

  // Some of few prefixes, so that caches meet them again and lose them again.
  std::vector<TokenId> AnyPrompt() {
    TraceRequest request{.at = {}, .input = 0, .output = 1, .ids = {random_.Below(3)}};
    const uint64_t more = random_.Below(5);
    for (uint64_t i = 0; i < more; ++i) request.ids.push_back(10 + random_.Below(4));
    request.input =
        static_cast<uint32_t>(request.ids.size() * kTokensPerTraceId - random_.Below(99));
    return PromptOf(request);
  }

  // Until there is nothing left to do.
  void Finish(TimePoint& now) {
    while (engine_.BeginStep(now)) {
      now = engine_.step_end();
      path_.Send(engine_.EndStep().events, now);
      path_.Deliver(now);
    }
  }

  Random random_{7};
  std::unique_ptr<TimingProfile> profile_ = Profile();
  VirtualEngine engine_{0, Options(), *profile_};
  CacheIndex index_{size_t{1} << 30, 1};
  Epochs::Seat seat_{index_.epochs()};
  EventPath path_{index_, engine_.label(), 64, seat_, Duration::zero()};
};

TEST_F(VirtualEngineTest, TellsItsCapacityLikeARealOne) {
  EXPECT_EQ(engine_.report().kv_tokens, 199u * 64);
  EXPECT_EQ(engine_.report().max_running, Options().max_num_seqs);
  EXPECT_EQ(engine_.report().batch_tokens, Options().max_num_batched_tokens);
}

TEST_F(VirtualEngineTest, TakesNewcomersIntoTheNextStep) {
  TimePoint now{seconds(1)};
  EXPECT_FALSE(engine_.BeginStep(now));
  EXPECT_EQ(engine_.step_end(), kNever);
  ASSERT_TRUE(engine_.Submit(5, {.prompt = AnyPrompt(), .max_tokens = 1}));
  ASSERT_TRUE(engine_.BeginStep(now));
  EXPECT_GT(engine_.step_end(), now);
  ASSERT_TRUE(engine_.Submit(6, {.prompt = AnyPrompt(), .max_tokens = 1}));
  EXPECT_FALSE(engine_.BeginStep(now));
  now = engine_.step_end();
  const EngineStep& first = engine_.EndStep();
  ASSERT_EQ(first.outputs.size(), 1u);
  EXPECT_EQ(engine_.OwnerOf(first.outputs[0].sequence), 5u);
  ASSERT_TRUE(engine_.BeginStep(now));
  EXPECT_EQ(engine_.OwnerOf(engine_.EndStep().outputs.at(0).sequence), 6u);
}

TEST_F(VirtualEngineTest, RefusesWhatCouldNeverFit) {
  EXPECT_FALSE(engine_.Submit(1, {.prompt = std::vector<TokenId>(20'000), .max_tokens = 1}));
}

// The index, fed by events, the oracle, and the engine itself when it gets the prompt: all say the
// same, through thousands of stores and evictions.
TEST_F(VirtualEngineTest, KnowsWhatTheIndexKnowsAndWhatTheEngineFinds) {
  VirtualEngine* const engines[] = {&engine_};
  TrueDepths oracle(engines);
  CacheReader reader(index_);
  TimePoint now{};
  uint64_t hits = 0;
  for (size_t i = 0; i < 2000; ++i) {
    const std::vector<TokenId> prompt = AnyPrompt();
    const size_t truth = oracle.Find(prompt, kKeySeed, {})[0].tokens[0];
    const auto found = reader.Match(prompt, kKeySeed);
    ASSERT_EQ(found.empty() ? 0 : found[0].tokens[0], truth);
    const uint64_t before = engine_.core().counters().cached_tokens;
    ASSERT_TRUE(engine_.Submit(i, {.prompt = prompt, .max_tokens = 1}));
    Finish(now);
    ASSERT_EQ(engine_.core().counters().cached_tokens - before, truth);
    hits += truth > 0 ? 1 : 0;
  }
  EXPECT_GT(hits, 100u);
  EXPECT_LT(hits, 2000u);
}

TEST_F(VirtualEngineTest, EventsTakeTheirTime) {
  EventPath late(index_, {77, 0}, 64, seat_, seconds(2));
  TimePoint now{};
  const std::vector<TokenId> prompt = AnyPrompt();
  ASSERT_TRUE(engine_.Submit(0, {.prompt = prompt, .max_tokens = 1}));
  ASSERT_TRUE(engine_.BeginStep(now));
  now = engine_.step_end();
  EXPECT_EQ(late.next(), kNever);
  late.Send(engine_.EndStep().events, now);
  EXPECT_EQ(late.next(), now + seconds(2));
  late.Deliver(now + seconds(1));
  EXPECT_EQ(index_.held(), 0u);
  late.Deliver(now + seconds(2));
  EXPECT_EQ(index_.held(), prompt.size() / 64);
  EXPECT_EQ(late.next(), kNever);
}

}  // namespace
}  // namespace fathom
