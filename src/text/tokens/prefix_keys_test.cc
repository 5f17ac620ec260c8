#include "text/tokens/prefix_keys.h"

#include <gtest/gtest.h>

#include <numeric>

#include "text/tokens/key_chain.h"

namespace fathom {
namespace {

std::vector<TokenId> Prompt(size_t count) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 1);
  return tokens;
}

std::vector<uint64_t> KeysOf(const std::vector<TokenId>& tokens, BlockShape shape,
                             std::span<const uint64_t> known = {}) {
  std::vector<uint64_t> storage;
  KeyChain chain(tokens, shape, kKeySeed, storage, known);
  const auto keys = chain.All();
  return {keys.begin(), keys.end()};
}

KnownPrefix Remembered(const std::vector<TokenId>& tokens, size_t shared) {
  auto keys = std::make_shared<PrefixKeys>();
  for (const BlockShape shape : {BlockShape{16}, BlockShape{8, true}}) {
    keys->chains.push_back({shape, KeysOf(tokens, shape)});
  }
  MarkPrompt(tokens, kKeySeed, keys->marks);
  return {keys, shared};
}

TEST(PrefixKeys, ContinueTheChainOfAPromptThatBeginsAlike) {
  const std::vector<TokenId> longer = Prompt(1000);
  std::vector<TokenId> other(longer.begin(), longer.begin() + 500);
  other.insert(other.end(), 300, 7);
  for (size_t shared = 0; shared <= 500; shared += 50) {
    const KnownPrefix known = Remembered(longer, shared);
    for (const BlockShape shape : {BlockShape{16}, BlockShape{8, true}, BlockShape{4}}) {
      EXPECT_EQ(KeysOf(other, shape, known.Chain(shape)), KeysOf(other, shape)) << shared;
    }
    std::vector<PromptMark> marks;
    std::vector<PromptMark> afresh;
    MarkPrompt(other, kKeySeed, marks, known.Marks());
    MarkPrompt(other, kKeySeed, afresh);
    EXPECT_EQ(marks, afresh) << shared;
  }
}

TEST(PrefixKeys, AreUsedUpToWhereThePromptsPartAndNotBeyond) {
  const KnownPrefix known = Remembered(Prompt(1000), 170);
  EXPECT_EQ(known.Chain({16}).size(), 10u);
  EXPECT_EQ(known.Chain({8, true}).size(), 21u) << "a block sees one token more";
  EXPECT_TRUE(known.Chain({32}).empty()) << "nobody has made these";
  ASSERT_EQ(known.Marks().size(), 2u);
  EXPECT_EQ(known.Marks().back().tokens, 128u);
  EXPECT_TRUE(KnownPrefix().Chain({16}).empty());
  EXPECT_TRUE(KnownPrefix().Marks().empty());
}

}  // namespace
}  // namespace fathom
