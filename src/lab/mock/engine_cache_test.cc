// What an engine core finds in its cache when it is not simply there: caching that is switched off,
// requests that skip it, preemption, and what is computed again though it was there once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "lab/mock/engine_core.h"

namespace fathom {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::VariantWith;

const TimingProfile& Polynomial() {
  static const auto profile = *TimingProfile::Named("polynomial");
  return *profile;
}

std::vector<TokenId> Prompt(TokenId first, size_t count) {
  std::vector<TokenId> tokens(count);
  for (size_t i = 0; i < count; ++i) tokens[i] = first + static_cast<TokenId>(i);
  return tokens;
}

// Everything that came of running until nothing is left.
struct History {
  std::vector<EngineOutput> outputs;
  std::vector<KvEvent> events;
};

History FinishWithHistory(EngineCore& core) {
  History history;
  for (EngineStep step; core.Step(step);) {
    history.outputs.insert(history.outputs.end(), step.outputs.begin(), step.outputs.end());
    history.events.insert(history.events.end(), step.events.begin(), step.events.end());
  }
  core.pool().CheckInvariants();
  return history;
}

History Ask(EngineCore& core, EngineRequest request) {
  EXPECT_TRUE(core.Submit(std::move(request)));
  return FinishWithHistory(core);
}

uint32_t Cached(EngineCore& core, EngineRequest request) {
  return Ask(core, std::move(request)).outputs.back().cached_tokens;
}

EngineRequest One(std::vector<TokenId> prompt) {
  return {.prompt = std::move(prompt), .max_tokens = 1};
}

TEST(EngineCache, HoldsNothingAndTellsNothingWhenItIsOff) {
  EngineCore core({.num_blocks = 100, .prefix_caching = false}, Polynomial());
  for (int i = 0; i < 2; ++i) {
    const History history = Ask(core, {.prompt = Prompt(1, 40), .max_tokens = 40});
    EXPECT_EQ(history.outputs.back().cached_tokens, 0u);
    EXPECT_THAT(history.events, IsEmpty());
  }
  EXPECT_EQ(core.pool().cached_blocks(), 0u);
  EXPECT_EQ(core.counters().cached_tokens, 0u);
}

TEST(EngineCache, WorksFromTheMomentItIsSwitchedOn) {
  EngineCore core({.num_blocks = 100, .prefix_caching = false}, Polynomial());
  Ask(core, One(Prompt(1, 40)));
  core.SetPrefixCaching(true);
  const History first = Ask(core, One(Prompt(1, 40)));
  EXPECT_EQ(first.outputs.back().cached_tokens, 0u);
  EXPECT_THAT(first.events, ElementsAre(VariantWith<BlocksStored>(_)));
  EXPECT_EQ(Cached(core, One(Prompt(1, 40))), 32u);
}

TEST(EngineCache, SaysThatItIsEmptyWhenItComesBack) {
  EngineCore core({.num_blocks = 100}, Polynomial());
  Ask(core, One(Prompt(1, 40)));
  core.SetPrefixCaching(false);
  EXPECT_EQ(Cached(core, One(Prompt(1, 40))), 0u);
  core.SetPrefixCaching(true);
  core.SetPrefixCaching(true);
  const History back = Ask(core, One(Prompt(1, 40)));
  EXPECT_THAT(back.events,
              ElementsAre(VariantWith<AllBlocksCleared>(_), VariantWith<BlocksStored>(_)));
}

// A sequence that runs through it all, on a cache in which it meets others.
TEST(EngineCache, IsWholeHoweverOftenItIsSwitched) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    EngineCore core({.block_size = 4, .num_blocks = 40, .max_num_seqs = 4}, Polynomial());
    EngineStep step;
    for (int i = 0; i < 200; ++i) {
      if (random.Below(3) == 0) {
        const auto first = static_cast<TokenId>(1000 * random.Below(3));
        const auto most = static_cast<uint32_t>(1 + random.Below(30));
        (void)core.Submit({.prompt = Prompt(first, 1 + random.Below(30)),
                           .max_tokens = most,
                           .skip_cache = random.Below(4) == 0});
      }
      if (random.Below(5) == 0) core.SetPrefixCaching(random.Below(2) == 0);
      if (core.Step(step)) core.pool().CheckInvariants();
      if (!core.options().prefix_caching) {
        ASSERT_EQ(core.pool().cached_blocks(), 0u);
      }
    }
  }
}

TEST(EngineCache, IsSkippedByWhoWantsItsPromptComputedAndGetsASecondCopy) {
  EngineCore core({.num_blocks = 100}, Polynomial());
  const History first = Ask(core, One(Prompt(1, 40)));
  EngineRequest request = One(Prompt(1, 40));
  request.skip_cache = true;
  const History again = Ask(core, request);
  EXPECT_EQ(again.outputs.back().cached_tokens, 0u);
  EXPECT_EQ(again.events, first.events);
  EXPECT_EQ(core.pool().cached_blocks(), 4u);
  EXPECT_EQ(Cached(core, One(Prompt(1, 40))), 32u);
}

TEST(EngineCache, TellsWhoseSequenceWasPreempted) {
  EngineCore core({.block_size = 16, .num_blocks = 13}, Polynomial());
  const SequenceId oldest = *core.Submit({.prompt = Prompt(0, 40), .max_tokens = 60});
  for (TokenId i = 1; i < 4; ++i) {
    ASSERT_TRUE(core.Submit({.prompt = Prompt(1000 * i, 40), .max_tokens = 60}));
  }
  const History history = FinishWithHistory(core);
  ASSERT_GT(core.counters().preemptions, 0u);
  const auto preempted = std::ranges::count_if(history.outputs, &EngineOutput::preempted);
  EXPECT_GT(preempted, 0);
  for (const EngineOutput& output : history.outputs) {
    EXPECT_FALSE(output.preempted && output.sequence == oldest);
  }
}

class SharedLedger : public testing::Test {
 protected:
  EngineOptions Options(uint32_t num_blocks = 100) const {
    return {.block_size = 16, .num_blocks = num_blocks, .ledger = ledger_};
  }
  static uint64_t Recomputed(const EngineCore& core) { return core.counters().recomputed_tokens; }

  std::shared_ptr<PrefixLedger> ledger_ = std::make_shared<PrefixLedger>();
};

TEST_F(SharedLedger, CountsWhatAnotherEngineHadAndNotWhatIsFound) {
  EngineCore a(Options(), Polynomial());
  EngineCore b(Options(), Polynomial());
  Ask(a, One(Prompt(1, 100)));
  EXPECT_EQ(Recomputed(a), 0u);
  Ask(a, One(Prompt(1, 100)));
  EXPECT_EQ(Recomputed(a), 0u) << "it was found";
  Ask(b, One(Prompt(1, 50)));
  EXPECT_EQ(Recomputed(b), 48u);
  Ask(b, One(Prompt(1, 100)));
  EXPECT_EQ(Recomputed(b), 96u) << "48 were found, 48 more could have been";
  EXPECT_EQ(b.counters().prompt_tokens, 150u);
  EXPECT_EQ(b.counters().cached_tokens, 48u);
}

TEST_F(SharedLedger, CountsNoMoreThanACacheCouldSave) {
  EngineCore a(Options(), Polynomial());
  EngineCore b(Options(), Polynomial());
  Ask(a, One(Prompt(1, 32)));
  Ask(b, One(Prompt(1, 32)));
  EXPECT_EQ(Recomputed(b), 16u) << "the last token is always computed";
  Ask(b, One(Prompt(1, 10)));
  EXPECT_EQ(Recomputed(b), 16u) << "no full block";
}

TEST_F(SharedLedger, CountsWhatWasEvicted) {
  EngineCore core(Options(9), Polynomial());
  Ask(core, One(Prompt(1, 100)));
  Ask(core, One(Prompt(5000, 100)));
  EXPECT_EQ(Recomputed(core), 0u);
  const uint32_t found = Cached(core, One(Prompt(1, 100)));
  EXPECT_LT(found, 96u);
  EXPECT_EQ(Recomputed(core), 96u - found);
}

TEST_F(SharedLedger, CountsAnswersThatComeBackInThePrompt) {
  EngineCore a(Options(), Polynomial());
  EngineCore b(Options(), Polynomial());
  std::vector<TokenId> conversation = Prompt(1, 10);
  for (const EngineOutput& output : Ask(a, {.prompt = conversation, .max_tokens = 40}).outputs) {
    conversation.push_back(output.token);
  }
  Ask(b, One(conversation));
  EXPECT_EQ(Recomputed(b), 48u);
}

TEST_F(SharedLedger, KeepsAdaptersAndSaltsApart) {
  EngineCore a(Options(), Polynomial());
  EngineCore b(Options(), Polynomial());
  Ask(a, One(Prompt(1, 100)));
  Ask(b, {.prompt = Prompt(1, 100), .max_tokens = 1, .lora = "ada"});
  Ask(b, {.prompt = Prompt(1, 100), .max_tokens = 1, .salt = "tenant"});
  EXPECT_EQ(Recomputed(b), 0u);
  Ask(a, {.prompt = Prompt(1, 100), .max_tokens = 1, .salt = "tenant"});
  EXPECT_EQ(Recomputed(a), 96u);
}

TEST_F(SharedLedger, CountsWhatIsComputedAgainBecauseCachingIsOff) {
  EngineOptions off = Options();
  off.prefix_caching = false;
  EngineCore core(off, Polynomial());
  for (int i = 0; i < 3; ++i) Ask(core, {.prompt = Prompt(1, 100), .max_tokens = 30});
  EXPECT_EQ(Recomputed(core), 2u * 96);
}

TEST_F(SharedLedger, DoesNotCountThatAPreemptedSequenceRunsAgain) {
  EngineCore core(Options(13), Polynomial());
  for (TokenId i = 0; i < 4; ++i) {
    ASSERT_TRUE(core.Submit({.prompt = Prompt(1000 * i, 40), .max_tokens = 60}));
  }
  FinishWithHistory(core);
  EXPECT_GT(core.counters().preemptions, 0u);
  EXPECT_EQ(Recomputed(core), 0u);
}

}  // namespace
}  // namespace fathom
