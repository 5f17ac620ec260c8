#include "router/fleet/block_size_votes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/random.h"

namespace fathom {
namespace {

Ballot AnyBallot(Random& random) {
  const auto size = [&] { return static_cast<uint32_t>(16 * random.Below(3)); };
  Ballot ballot{.engine = random.Below(2) == 0 ? EngineKind::kVllm : EngineKind::kSglang,
                .report = size(),
                .proven = size(),
                .remembered = size(),
                .votes = random.Below(3) != 0,
                .settled = random.Below(2) == 0};
  ballot.contradicted = ballot.report != 0 && random.Below(3) == 0;
  return ballot;
}

bool PlainlyBelieved(const std::vector<Ballot>& all, const Ballot& ballot) {
  if (ballot.report == 0 || ballot.contradicted) return false;
  bool contradicted = false;
  for (const Ballot& other : all) {
    if (other.engine != ballot.engine || other.report != ballot.report) continue;
    if (other.proven == other.report) return true;
    contradicted = contradicted || other.contradicted;
  }
  return !contradicted;
}

// The same by a look at every ballot, as often as it takes.
TEST(BallotBoxProperty, AgreesWithAPlainCount) {
  Random random(7);
  BallotBox box;
  std::vector<Ballot> all;
  for (int step = 0; step < 3000; ++step) {
    if (all.size() < 12 && random.Below(2) == 0) {
      all.push_back(AnyBallot(random));
      box.Add(all.back());
    } else if (!all.empty()) {
      std::swap(all[random.Below(all.size())], all.back());
      box.Remove(all.back());
      all.pop_back();
    }
    std::map<uint32_t, std::vector<size_t>> expected;
    for (const Ballot& ballot : all) {
      ASSERT_EQ(box.Believes(ballot), PlainlyBelieved(all, ballot));
      if (!ballot.votes) continue;
      const uint32_t claim = PlainlyBelieved(all, ballot) ? ballot.report : ballot.remembered;
      const uint32_t size = ballot.proven != 0 ? ballot.proven : claim;
      if (size == 0) continue;
      auto& counts = expected.try_emplace(size, 4).first->second;
      ++counts[(ballot.proven != 0 ? 0 : 2) + (ballot.settled ? 0 : 1)];
    }
    const std::vector<SizeVotes> votes = box.Count();
    ASSERT_EQ(votes.size(), expected.size());
    for (const SizeVotes& of : votes) {
      const std::vector<size_t> counted = {of.settled_proven, of.other_proven, of.settled_claims,
                                           of.other_claims};
      ASSERT_EQ(counted, expected[of.size]);
    }
  }
}

}  // namespace
}  // namespace fathom
