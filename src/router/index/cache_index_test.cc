#include "router/index/cache_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.h"
#include "testing/sanitizers.h"
#include "testing/token_run.h"

namespace fathom {
namespace {

constexpr size_t kPlenty = size_t{1} << 30;

class CacheIndexTest : public testing::Test {
 protected:
  std::unique_ptr<RankHoldings> Open(uint64_t worker, uint32_t size) {
    return index_.Open({worker, 0}, {.size = size}, seat_);
  }
  // The whole blocks of a prompt. An engine's hash of a block is its key here.
  void Store(RankHoldings& rank, std::span<const TokenId> tokens) {
    const BlockShape shape = rank.shape();
    std::vector<uint64_t> keys;
    KeyChain(tokens, shape, kKeySeed, keys).All();
    keys.resize(shape.BlocksIn(tokens.size()));
    if (keys.empty()) return;
    rank.Store({.hashes = keys, .tokens = tokens.first(keys.size() * shape.size)}, {});
  }
  // Found tokens by worker and block size, without the zeros.
  std::map<std::pair<uint64_t, uint32_t>, size_t> Found(std::span<const TokenId> tokens) {
    std::map<std::pair<uint64_t, uint32_t>, size_t> all;
    for (const auto& found : reader_.Match(tokens, kKeySeed)) {
      if (found.tokens[0] > 0) all[{found.rank.worker, found.block_size}] = found.tokens[0];
    }
    return all;
  }
  // How many tokens of this prompt a cache that holds the prompts `held` would find.
  static size_t Depth(const std::vector<std::vector<TokenId>>& held, uint32_t size,
                      const std::vector<TokenId>& tokens) {
    size_t deepest = 0;
    for (const auto& prompt : held) {
      const size_t whole = prompt.size() / size * size;
      const auto equal =
          std::mismatch(prompt.begin(), prompt.begin() + static_cast<ptrdiff_t>(whole),
                        tokens.begin(), tokens.end());
      const auto common = static_cast<size_t>(equal.first - prompt.begin());
      deepest = std::max(deepest, std::min(common, tokens.size() - 1) / size * size);
    }
    return deepest;
  }

  CacheIndex index_{kPlenty, 7};
  Epochs::Seat seat_{index_.epochs()};
  CacheReader reader_{index_};
};

TEST_F(CacheIndexTest, CountsInTokensWhateverTheBlocks) {
  const auto a = Open(1, 1);
  const auto b = Open(2, 16);
  const auto c = Open(3, 32);
  const auto d = Open(4, 2096);
  const std::vector<TokenId> prompt = TokenRun(5000);
  Store(*a, std::span(prompt).first(70));
  Store(*b, std::span(prompt).first(70));
  Store(*c, std::span(prompt).first(70));
  Store(*d, prompt);
  using All = std::map<std::pair<uint64_t, uint32_t>, size_t>;
  EXPECT_EQ(Found(prompt), (All{{{1, 1}, 70}, {{2, 16}, 64}, {{3, 32}, 64}, {{4, 2096}, 4192}}));
  // The last token is always computed, and with it the rest of its block.
  EXPECT_EQ(Found(TokenRun(64)), (All{{{1, 1}, 63}, {{2, 16}, 48}, {{3, 32}, 32}}));
}

TEST_F(CacheIndexTest, RefusesAKindOfBlocksTooManyAndKeepsTheOthers) {
  for (uint32_t size = 1; size <= CacheIndex::kMostShapes; ++size) {
    ASSERT_NE(Open(1, size), nullptr) << size;
  }
  EXPECT_EQ(Open(1, CacheIndex::kMostShapes + 1), nullptr);
  EXPECT_EQ(Open(1, 0), nullptr);
  EXPECT_NE(Open(1, 5), nullptr);
  EXPECT_EQ(index_.shapes(), CacheIndex::kMostShapes);
}

// Ranks store prompts that share beginnings, leave, and come back with any block size. Each rank
// must always be found with its current block size, as deep as it has stored since it came back.
TEST_F(CacheIndexTest, ARankThatComesBackWithOtherBlocksLeavesNoneOfTheOldOnes) {
  constexpr uint32_t kSizes[] = {1, 3, 4, 8, 12};
  struct Rank {
    std::unique_ptr<RankHoldings> holdings;
    std::vector<std::vector<TokenId>> held;
  };
  Random random(11);
  std::map<uint64_t, Rank> ranks;
  const auto prompt = [&] {
    std::vector<TokenId> tokens = TokenRun(1 + random.Below(60), 100);
    for (size_t i = random.Below(80); i < tokens.size(); ++i) tokens[i] += 1000;
    return tokens;
  };
  for (int step = 0; step < (kSanitized ? 2'000 : 20'000); ++step) {
    const uint64_t worker = 1 + random.Below(5);
    Rank& rank = ranks[worker];
    if (!rank.holdings || random.Below(8) == 0) {
      rank = {};  // closed before it is opened again, as a feed does
      if (random.Below(4) != 0) rank.holdings = Open(worker, kSizes[random.Below(5)]);
    } else {
      rank.held.push_back(prompt());
      Store(*rank.holdings, rank.held.back());
    }
    const std::vector<TokenId> asked = prompt();
    std::map<std::pair<uint64_t, uint32_t>, size_t> expected;
    for (const auto& [number, other] : ranks) {
      if (!other.holdings) continue;
      const uint32_t size = other.holdings->shape().size;
      const size_t depth = Depth(other.held, size, asked);
      if (depth > 0) expected[{number, size}] = depth;
    }
    ASSERT_EQ(Found(asked), expected) << "step " << step;
  }
  ranks.clear();
  EXPECT_EQ(index_.held(), 0u);
  for (size_t i = 0; i < index_.shapes(); ++i) EXPECT_EQ(index_.at(i).CountBlocks(), 0u);
}

// --- lost blocks ---------------------------------------------------------------------------------

class LostPrefixTest : public testing::Test {
 protected:
  static constexpr uint32_t kSize = 4;

  static std::vector<uint64_t> KeysOf(std::span<const TokenId> tokens, BlockShape shape) {
    std::vector<uint64_t> keys;
    KeyChain(tokens, shape, kKeySeed, keys).All();
    keys.resize(shape.BlocksIn(tokens.size()));
    return keys;
  }
  void Store(RankHoldings& rank, std::span<const TokenId> tokens) {
    const auto keys = KeysOf(tokens, rank.shape());
    rank.Store({.hashes = keys, .tokens = tokens.first(keys.size() * rank.shape().size)}, {});
  }
  // Removes the blocks of a prompt from block `from` on.
  static void Remove(RankHoldings& rank, std::span<const TokenId> tokens, size_t from) {
    const auto keys = KeysOf(tokens, rank.shape());
    rank.Remove(std::span(keys).subspan(from), {});
  }
  CacheReader::Lost Lost(std::span<const TokenId> tokens) {
    reader_.Match(tokens, kKeySeed);
    return reader_.FindLost(tokens, kKeySeed);
  }

  CacheIndex index_{kPlenty, 7, 1 << 20};
  Epochs::Seat seat_{index_.epochs()};
  CacheReader reader_{index_};
};

TEST_F(LostPrefixTest, IsToldWithWhatBecameOfIt) {
  const auto rank = index_.Open({1, 0}, {.size = kSize}, seat_);
  const auto prompt = TokenRun(41);
  Store(*rank, prompt);
  EXPECT_EQ(Lost(prompt).tokens, 0u) << "it is all there";
  index_.lost()->SetNow(TimePoint(std::chrono::seconds(9)));
  Remove(*rank, prompt, 3);
  const auto evicted = Lost(prompt);
  EXPECT_EQ(evicted.tokens, 40u);
  EXPECT_EQ(evicted.loss.how, LostHow::kEvicted);
  EXPECT_EQ(evicted.loss.owner, LostBlocks::OwnerOf(1, 0));
  EXPECT_EQ(evicted.loss.second, 9u);
  rank->Clear();
  EXPECT_EQ(Lost(std::span(prompt).first(10)).tokens, 8u);
  EXPECT_EQ(Lost(std::span(prompt).first(10)).loss.how, LostHow::kGone);
  Store(*rank, prompt);
  EXPECT_EQ(Lost(prompt).tokens, 0u) << "it is there again";
}

TEST_F(LostPrefixTest, ReachesBeyondWhatOthersHold) {
  const auto a = index_.Open({1, 0}, {.size = kSize}, seat_);
  const auto b = index_.Open({2, 0}, {.size = kSize}, seat_);
  const auto prompt = TokenRun(41);
  Store(*a, prompt);
  Store(*b, std::span(prompt).first(24));
  Remove(*a, prompt, 0);
  EXPECT_EQ(Lost(prompt).tokens, 40u);
  EXPECT_EQ(Lost(std::span(prompt).first(25)).tokens, 0u) << "somebody has all of this";
}

TEST_F(LostPrefixTest, EndsWhereItsPromptEnds) {
  const auto rank = index_.Open({1, 0}, {.size = kSize}, seat_);
  const auto prompt = TokenRun(400);
  for (const size_t blocks : {1, 2, 3, 5, 8, 13, 31, 32, 33, 64, 99}) {
    Store(*rank, std::span(prompt).first(blocks * kSize));
    Remove(*rank, std::span(prompt).first(blocks * kSize), 0);
    EXPECT_EQ(Lost(prompt).tokens, blocks * kSize);
  }
  // The last token is always computed, and with it the rest of its block.
  EXPECT_EQ(Lost(std::span(prompt).first(40)).tokens, 36u);
  EXPECT_EQ(Lost(std::span(prompt).first(3)).tokens, 0u);
  EXPECT_EQ(Lost(TokenRun(400, 5000)).tokens, 0u);
}

TEST_F(LostPrefixTest, IsToldOfRanksThatLeftAndOfBlocksThatNobodyToldOf) {
  const auto prompt = TokenRun(33);
  index_.Open({1, 0}, {.size = 8}, seat_).reset();
  EXPECT_EQ(Lost(prompt).tokens, 0u);
  constexpr BlockShape kOther{.size = 16};  // no rank has such blocks
  index_.lost()->AddShape(kOther);
  for (const uint64_t key : KeysOf(std::span(prompt).first(16), kOther)) {
    index_.lost()->Add(key, LostHow::kSent, 5);
  }
  EXPECT_EQ(Lost(prompt).tokens, 16u);
  EXPECT_EQ(Lost(prompt).loss.how, LostHow::kSent);
  auto rank = index_.Open({1, 0}, {.size = 8}, seat_);
  Store(*rank, prompt);
  rank.reset();
  EXPECT_EQ(Lost(prompt).tokens, 32u) << "the deeper one";
  EXPECT_EQ(Lost(prompt).loss.how, LostHow::kGone);
  // A different prompt right after must find nothing of the first.
  EXPECT_EQ(Lost(TokenRun(33, 9000)).tokens, 0u);
}

TEST_F(LostPrefixTest, IsKeptApartByNamespace) {
  const auto rank = index_.Open({1, 0}, {.size = kSize}, seat_);
  const auto prompt = TokenRun(41);
  Store(*rank, prompt);
  Remove(*rank, prompt, 0);
  const uint64_t salted = NamespaceSeed("", "pepper");
  reader_.Match(prompt, salted);
  EXPECT_EQ(reader_.FindLost(prompt, salted).tokens, 0u);
}

TEST_F(LostPrefixTest, IsFoundFromWhatAnEarlierPromptLeft) {
  const auto rank = index_.Open({1, 0}, {.size = kSize}, seat_);
  const auto prompt = TokenRun(81);
  Store(*rank, prompt);
  Remove(*rank, prompt, 0);
  const auto keys = std::make_shared<PrefixKeys>();
  reader_.Match(std::span(prompt).first(41), kKeySeed);
  reader_.Keep(std::span(prompt).first(41), kKeySeed, *keys);
  const KnownPrefix known{.keys = keys, .tokens = 41};
  reader_.Match(prompt, kKeySeed, known);
  EXPECT_EQ(reader_.FindLost(prompt, kKeySeed, known).tokens, 80u);
}

TEST_F(CacheIndexTest, TellsOfNothingLostWhereThatIsNotRemembered) {
  const auto rank = Open(1, 4);
  const auto prompt = TokenRun(41);
  Store(*rank, prompt);
  rank->Clear();
  reader_.Match(prompt, kKeySeed);
  EXPECT_EQ(index_.lost(), nullptr);
  EXPECT_EQ(reader_.FindLost(prompt, kKeySeed).tokens, 0u);
}

// Independent of earlier calls, and of whether a rank has blocks of that shape.
TEST_F(CacheIndexTest, MakesTheKeysOfAPromptFromAnyBlockOn) {
  const auto rank = Open(1, 4);
  for (const auto& prompt : {TokenRun(41), TokenRun(13, 500), TokenRun(3), TokenRun(81)}) {
    reader_.Match(prompt, kKeySeed);
    for (const BlockShape shape :
         {BlockShape{.size = 4}, {.size = 16}, {.size = 4, .pairs = true}}) {
      std::vector<uint64_t> expected;
      KeyChain(prompt, shape, kKeySeed, expected).All();
      for (const size_t from : {0, 2, 1000}) {
        const auto keys = reader_.KeysOf(prompt, kKeySeed, shape, from);
        const auto rest = std::span(expected).subspan(std::min(from, expected.size()));
        EXPECT_TRUE(std::ranges::equal(keys, rest)) << shape.size << " from " << from;
      }
    }
  }
}

}  // namespace
}  // namespace fathom
