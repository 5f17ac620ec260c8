#include "lab/mock/prefix_ledger.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace fathom {
namespace {

std::vector<BlockHash> Hashes(uint64_t seed, size_t count) {
  Random random(seed);
  std::vector<BlockHash> hashes(count);
  for (BlockHash& hash : hashes) hash = random.Next();
  return hashes;
}

TEST(PrefixLedger, KnowsAPrefixUpToTheFirstBlockThatNobodyHad) {
  PrefixLedger ledger;
  const std::vector<BlockHash> prompt = Hashes(1, 10);
  EXPECT_EQ(ledger.Known(prompt), 0u);
  ledger.Enter(std::span(prompt).first(4));
  ledger.Enter(std::span(prompt).subspan(5));
  EXPECT_EQ(ledger.Known(prompt), 4u);
  ledger.Enter(std::span(prompt).subspan(4, 1));
  EXPECT_EQ(ledger.Known(prompt), 10u);
  EXPECT_EQ(ledger.Known({}), 0u);
}

TEST(PrefixLedger, ForgetsNothingAsItGrows) {
  PrefixLedger ledger;
  const std::vector<BlockHash> prompt = Hashes(2, 100'000);
  for (const BlockHash hash : prompt) ledger.Enter({&hash, 1});
  ledger.Enter(prompt);
  EXPECT_EQ(ledger.Known(prompt), prompt.size());
  EXPECT_EQ(ledger.Known(Hashes(3, 10)), 0u);
  EXPECT_FALSE(ledger.full());
}

TEST(PrefixLedger, HasNoHashThatCannotBeEntered) {
  PrefixLedger ledger;
  const std::vector<BlockHash> odd = {0, ~BlockHash{0}};
  EXPECT_EQ(ledger.Known(odd), 0u);
  ledger.Enter(odd);
  EXPECT_EQ(ledger.Known(odd), 2u);
}

TEST(PrefixLedger, SaysThatItIsFullOnceSomethingDidNotFit) {
  PrefixLedger ledger(100);
  const std::vector<BlockHash> prompt = Hashes(4, 101);
  ledger.Enter(std::span(prompt).first(100));
  ledger.Enter(std::span(prompt).first(100));
  EXPECT_FALSE(ledger.full());
  ledger.Enter(prompt);
  EXPECT_TRUE(ledger.full());
  EXPECT_EQ(ledger.Known(prompt), 100u);
}

}  // namespace
}  // namespace fathom
