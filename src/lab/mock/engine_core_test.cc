#include "lab/mock/engine_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.h"

namespace fathom {
namespace {

using testing::SizeIs;

const TimingProfile& PolynomialTimes() {
  static const auto profile = *TimingProfile::Named("polynomial");
  return *profile;
}

std::vector<TokenId> PromptFrom(TokenId first, size_t count) {
  std::vector<TokenId> tokens(count);
  for (size_t i = 0; i < count; ++i) tokens[i] = first + static_cast<TokenId>(i);
  return tokens;
}

// What a listener who believes every event thinks the cache holds.
class EventListener {
 public:
  void Hear(const std::vector<KvEvent>& events) {
    for (const KvEvent& event : events) {
      if (const auto* stored = std::get_if<BlocksStored>(&event)) {
        EXPECT_EQ(stored->tokens.size(), stored->hashes.size() * stored->block_size);
        for (const BlockHash hash : stored->hashes) ++copies_[hash];
      } else if (const auto* removed = std::get_if<BlockRemoved>(&event)) {
        ASSERT_GT(copies_[removed->hash], 0);
        if (--copies_[removed->hash] == 0) copies_.erase(removed->hash);
      } else {
        copies_.clear();
      }
    }
  }

  std::vector<BlockHash> Content() const {
    std::vector<BlockHash> content;
    for (const auto& [hash, count] : copies_) content.insert(content.end(), count, hash);
    return content;
  }

 private:
  std::map<BlockHash, int> copies_;
};

std::vector<BlockHash> Sorted(std::vector<BlockHash> hashes) {
  std::sort(hashes.begin(), hashes.end());
  return hashes;
}

// Runs until nothing is left; the outputs of all steps.
std::vector<EngineOutput> FinishAll(EngineCore& core, Duration* took = nullptr) {
  std::vector<EngineOutput> outputs;
  for (EngineStep step; core.Step(step);) {
    outputs.insert(outputs.end(), step.outputs.begin(), step.outputs.end());
    if (took != nullptr) *took += step.duration;
  }
  return outputs;
}

TEST(EngineCore, AlwaysComputesTheLastToken) {
  EngineCore core({.block_size = 16, .num_blocks = 100}, PolynomialTimes());
  ASSERT_TRUE(core.Submit({.prompt = PromptFrom(1, 32), .max_tokens = 1}));
  EXPECT_EQ(FinishAll(core).front().cached_tokens, 0u);
  ASSERT_TRUE(core.Submit({.prompt = PromptFrom(1, 32), .max_tokens = 1}));
  EXPECT_EQ(FinishAll(core).front().cached_tokens, 16u);
  ASSERT_TRUE(core.Submit({.prompt = PromptFrom(1, 33), .max_tokens = 1}));
  EXPECT_EQ(FinishAll(core).front().cached_tokens, 32u);
}

TEST(EngineCore, CachesWhatItGenerates) {
  EngineCore core({.block_size = 16, .num_blocks = 100}, PolynomialTimes());
  ASSERT_TRUE(core.Submit({.prompt = PromptFrom(1, 10), .max_tokens = 40}));
  std::vector<TokenId> conversation = PromptFrom(1, 10);
  for (const EngineOutput& output : FinishAll(core)) conversation.push_back(output.token);
  ASSERT_THAT(conversation, SizeIs(50));
  ASSERT_TRUE(core.Submit({.prompt = conversation, .max_tokens = 1}));
  EXPECT_EQ(FinishAll(core).front().cached_tokens, 48u);
}

TEST(EngineCore, SharesBlocksFromTheMomentTheyAreScheduled) {
  EngineCore core({.block_size = 16, .num_blocks = 100}, PolynomialTimes());
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(core.Submit({.prompt = PromptFrom(1, 40), .max_tokens = 1}));
  std::vector<uint32_t> cached;
  for (const EngineOutput& output : FinishAll(core)) cached.push_back(output.cached_tokens);
  EXPECT_THAT(cached, testing::ElementsAre(0, 32, 32));
}

// What the events since then say is what the cache holds.
TEST(EngineCore, ForgetsEverythingInARestartAndStillAnswersEverybody) {
  EngineCore core({.block_size = 16, .num_blocks = 100}, PolynomialTimes());
  ASSERT_TRUE(core.Submit({.prompt = PromptFrom(1, 40), .max_tokens = 40}));
  ASSERT_TRUE(core.Submit({.prompt = PromptFrom(5000, 40), .max_tokens = 20}));
  size_t answered = 0;
  EngineStep step;
  for (int i = 0; i < 10 && core.Step(step); ++i) answered += step.outputs.size();
  core.Restart();
  EXPECT_EQ(core.running(), 0u);
  EXPECT_EQ(core.pool().cached_blocks(), 0u);
  std::vector<BlockHash> stored;
  bool first = true;
  while (core.Step(step)) {
    answered += step.outputs.size();
    for (const KvEvent& event : step.events) {
      const auto& blocks = std::get<BlocksStored>(event);
      EXPECT_TRUE(!std::exchange(first, false) || !blocks.parent);
      stored.insert(stored.end(), blocks.hashes.begin(), blocks.hashes.end());
    }
  }
  EXPECT_EQ(answered, 60u);
  EXPECT_THAT(core.pool().Content(), testing::UnorderedElementsAreArray(stored));
}

// In both directions: there is always room for those who were admitted before.
TEST(EngineCore, ComesBackFromARestartWithOtherBlocks) {
  for (const uint32_t size : {4u, 24u, 64u, 4096u}) {
    EngineCore core({.block_size = 16, .num_blocks = 9}, PolynomialTimes());
    ASSERT_TRUE(core.Submit({.prompt = PromptFrom(1, 100), .max_tokens = 28}));
    size_t answered = 0;
    EngineStep step;
    for (int i = 0; i < 10 && core.Step(step); ++i) answered += step.outputs.size();
    core.Restart(size);
    EXPECT_EQ(core.options().block_size, size);
    EXPECT_GE(core.capacity_tokens(), 128u);
    size_t stored = 0;
    while (core.Step(step)) {
      answered += step.outputs.size();
      for (const KvEvent& event : step.events) {
        const auto& blocks = std::get<BlocksStored>(event);
        EXPECT_EQ(blocks.block_size, size);
        EXPECT_EQ(blocks.tokens.size(), blocks.hashes.size() * size);
        stored += blocks.hashes.size();
      }
    }
    EXPECT_EQ(answered, 28u);
    EXPECT_EQ(stored, 127 / size) << "the last token is said, and nothing computed with it";
    core.pool().CheckInvariants();
  }
}

TEST(EngineCore, KeepsNamespacesApart) {
  EngineCore core({.block_size = 16, .num_blocks = 100}, PolynomialTimes());
  ASSERT_TRUE(core.Submit({.prompt = PromptFrom(1, 40), .max_tokens = 1}));
  ASSERT_TRUE(core.Submit({.prompt = PromptFrom(1, 40), .max_tokens = 1, .salt = "tenant"}));
  ASSERT_TRUE(core.Submit({.prompt = PromptFrom(1, 40), .max_tokens = 1, .lora = "ada"}));
  for (const EngineOutput& output : FinishAll(core)) EXPECT_EQ(output.cached_tokens, 0u);
}

TEST(EngineCore, PrefillsALongPromptInChunksBesideWhatRuns) {
  EngineCore core({.block_size = 16, .num_blocks = 1000, .max_num_batched_tokens = 512},
                  PolynomialTimes());
  ASSERT_TRUE(core.Submit({.prompt = PromptFrom(1, 100), .max_tokens = 10}));
  EngineStep step;
  ASSERT_TRUE(core.Step(step));
  ASSERT_TRUE(core.Submit({.prompt = PromptFrom(5000, 2000), .max_tokens = 1}));
  ASSERT_TRUE(core.Step(step));
  EXPECT_EQ(step.load.decoding, 1u);
  EXPECT_EQ(step.load.new_tokens, 511u);
  EXPECT_THAT(step.outputs, SizeIs(1));
}

TEST(EngineCore, RunsNoMoreThanItsLimitAtOnce) {
  EngineCore core({.num_blocks = 1000, .max_num_seqs = 4}, PolynomialTimes());
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(core.Submit({.prompt = PromptFrom(1, 20), .max_tokens = 9}));
  for (EngineStep step; core.Step(step);) EXPECT_LE(core.running(), 4u);
}

TEST(EngineCore, PreemptsTheYoungestWhenTheCacheIsFullAndStillAnswersEverybody) {
  EngineCore core({.block_size = 16, .num_blocks = 13}, PolynomialTimes());
  for (TokenId i = 0; i < 4; ++i) {
    ASSERT_TRUE(core.Submit({.prompt = PromptFrom(1000 * i, 40), .max_tokens = 60}));
  }
  const auto outputs = FinishAll(core);
  EXPECT_GT(core.counters().preemptions, 0u);
  EXPECT_EQ(std::count_if(outputs.begin(), outputs.end(),
                          [](const EngineOutput& output) { return output.finished; }),
            4);
  EXPECT_THAT(outputs, SizeIs(4 * 60));
  EXPECT_EQ(core.pool().free_blocks(), core.pool().usable_blocks());
}

TEST(EngineCore, RefusesWhatCanNeverFit) {
  EngineCore core({.block_size = 16, .num_blocks = 5}, PolynomialTimes());
  EXPECT_TRUE(core.Submit({.prompt = PromptFrom(1, 60), .max_tokens = 4}));
  EXPECT_FALSE(core.Submit({.prompt = PromptFrom(1, 60), .max_tokens = 5}));
  EXPECT_FALSE(core.Submit({.prompt = {}, .max_tokens = 5}));
}

TEST(EngineCore, ACancelledSequenceLeavesNothingBehind) {
  EngineCore core({.block_size = 16, .num_blocks = 100}, PolynomialTimes());
  const SequenceId running = *core.Submit({.prompt = PromptFrom(1, 40), .max_tokens = 100});
  EngineStep step;
  ASSERT_TRUE(core.Step(step));
  const SequenceId waiting = *core.Submit({.prompt = PromptFrom(1, 40), .max_tokens = 100});
  core.Cancel(waiting);
  core.Cancel(running);
  core.Cancel(running);
  EXPECT_FALSE(core.Step(step));
  EXPECT_EQ(core.pool().free_blocks(), core.pool().usable_blocks());
}

TEST(EngineCore, AnnouncesAResetWithTheNextStep) {
  EngineCore core({.block_size = 16, .num_blocks = 100}, PolynomialTimes());
  ASSERT_TRUE(core.Submit({.prompt = PromptFrom(1, 40), .max_tokens = 2}));
  EngineStep step;
  ASSERT_TRUE(core.Step(step));
  EXPECT_FALSE(core.ResetPrefixCache());
  FinishAll(core);
  EXPECT_TRUE(core.ResetPrefixCache());
  ASSERT_TRUE(core.Submit({.prompt = PromptFrom(1, 40), .max_tokens = 1}));
  ASSERT_TRUE(core.Step(step));
  EXPECT_TRUE(std::holds_alternative<AllBlocksCleared>(step.events.front()));
  EXPECT_EQ(step.outputs.front().cached_tokens, 0u);
}

// Random traffic with shared prefixes, cancellations and resets on a cache that is too small.
struct Traffic {
  explicit Traffic(uint64_t seed) : random(seed), core(Options(), PolynomialTimes()) {}

  EngineOptions Options() {
    return {.block_size = static_cast<uint32_t>(1 + random.Below(16)),
            .num_blocks = static_cast<uint32_t>(40 + random.Below(40)),
            .max_num_seqs = static_cast<uint32_t>(1 + random.Below(8)),
            .max_num_batched_tokens = static_cast<uint32_t>(1 + random.Below(100)),
            .seed = random.Next()};
  }

  void Submit() {
    auto prompt = PromptFrom(static_cast<TokenId>(1000 * random.Below(3)), 1 + random.Below(30));
    if (random.Below(2) == 0) prompt.push_back(static_cast<TokenId>(random.Below(3)));
    const auto most = static_cast<uint32_t>(1 + random.Below(20));
    const auto id = core.Submit({.prompt = std::move(prompt),
                                 .max_tokens = most,
                                 .salt = random.Below(8) == 0 ? "salt" : ""});
    if (id) last = *id;
  }

  Random random;
  EngineCore core;
  SequenceId last = 0;
};

TEST(EngineCore, EventsReplayedGiveExactlyThePoolAfterAnyHistory) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Traffic traffic(seed);
    EventListener listener;
    EngineStep step;
    for (int i = 0; i < 150; ++i) {
      if (traffic.random.Below(3) == 0) traffic.Submit();
      if (traffic.random.Below(20) == 0) traffic.core.Cancel(traffic.last);
      if (traffic.random.Below(40) == 0) traffic.core.ResetPrefixCache();
      if (!traffic.core.Step(step)) continue;
      listener.Hear(step.events);
      traffic.core.pool().CheckInvariants();
      ASSERT_EQ(Sorted(listener.Content()), Sorted(traffic.core.pool().Content()))
          << "seed " << seed;
    }
  }
}

TEST(EngineCore, TheSameSeedAndCallsGiveTheSameHistory) {
  const auto history = [](uint64_t seed) {
    Traffic traffic(seed);
    std::vector<std::tuple<SequenceId, TokenId, Duration>> out;
    EngineStep step;
    for (int i = 0; i < 200; ++i) {
      if (traffic.random.Below(3) == 0) traffic.Submit();
      if (!traffic.core.Step(step)) continue;
      for (const auto& o : step.outputs) out.emplace_back(o.sequence, o.token, step.duration);
    }
    return out;
  };
  EXPECT_EQ(history(7), history(7));
  EXPECT_NE(history(7), history(8));
}

TEST(EngineCore, TimeToFirstTokenOfALonePromptIsWhatTheTableSays) {
  const auto profile = *MeasuredProfile::Named("h200-llama-3.1-8b");
  EngineCore core({.num_blocks = 8192, .max_num_batched_tokens = 16384}, *profile);
  ASSERT_TRUE(core.Submit({.prompt = PromptFrom(1, 8192), .max_tokens = 1}));
  Duration took{};
  FinishAll(core, &took);
  EXPECT_NEAR(Seconds(took), 0.2513161, 1e-6);
}

TEST(EngineCore, SaturatedDecodingRunsAtTheTablesRate) {
  const auto profile = *MeasuredProfile::Named("h200-llama-3.1-8b");
  EngineCore core({.num_blocks = 65536, .max_num_seqs = 64}, *profile);
  for (TokenId i = 0; i < 64; ++i) {
    ASSERT_TRUE(core.Submit({.prompt = PromptFrom(100000 * i, 1024 - 50), .max_tokens = 100}));
  }
  uint64_t tokens = 0;
  Duration took{};
  for (EngineStep step; core.Step(step);) {
    if (step.load.decoding < 64) continue;  // not all have begun, or some have ended
    tokens += step.outputs.size();
    took += step.duration;
  }
  ASSERT_GT(tokens, 64u * 50);
  // 64 sequences of about 1024 tokens: one step in 8.2613 ms, says the table.
  const double rate = 64 / 0.0082613;
  EXPECT_NEAR(static_cast<double>(tokens) / Seconds(took), rate, rate / 100);
}

}  // namespace
}  // namespace fathom
