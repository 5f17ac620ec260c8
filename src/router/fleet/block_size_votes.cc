#include "router/fleet/block_size_votes.h"

#include <algorithm>

namespace fathom {
namespace {

using Report = std::pair<EngineKind, uint32_t>;

Report ReportOf(const Ballot& ballot) { return {ballot.engine, ballot.report}; }

struct Opinion {
  bool confirmed = false;
  bool contradicted = false;
  bool believed() const { return confirmed || !contradicted; }
};

void Hear(Opinion& opinion, const Ballot& ballot) {
  opinion.confirmed = opinion.confirmed || ballot.proven == ballot.report;
  opinion.contradicted = opinion.contradicted || ballot.contradicted;
}

}  // namespace

void BallotBox::Remove(const Ballot& ballot) {
  const auto found = ballots_.find(ballot);
  if (found != ballots_.end() && --found->second == 0) ballots_.erase(found);
}

bool BallotBox::Believes(const Ballot& ballot) const {
  if (ballot.report == 0 || ballot.contradicted) return false;
  Opinion opinion;
  const auto first = ballots_.lower_bound({.engine = ballot.engine, .report = ballot.report});
  for (auto at = first; at != ballots_.end() && ReportOf(at->first) == ReportOf(ballot); ++at) {
    Hear(opinion, at->first);
  }
  return opinion.believed();
}

BallotBox::Doubts BallotBox::AllDoubts() const {
  Doubts doubts;
  for (auto at = ballots_.begin(); at != ballots_.end();) {
    const Report report = ReportOf(at->first);
    Opinion opinion;
    for (; at != ballots_.end() && ReportOf(at->first) == report; ++at) Hear(opinion, at->first);
    if (report.second != 0 && !opinion.believed()) doubts.push_back(report);
  }
  return doubts;
}

std::vector<SizeVotes> BallotBox::Count() const {
  std::map<uint32_t, SizeVotes> votes;
  const Doubts doubts = AllDoubts();
  for (const auto& [ballot, count] : ballots_) {
    if (!ballot.votes) continue;
    const bool believed = ballot.report != 0 && !ballot.contradicted &&
                          !std::ranges::binary_search(doubts, ReportOf(ballot));
    const uint32_t claim = believed ? ballot.report : ballot.remembered;
    const uint32_t size = ballot.proven != 0 ? ballot.proven : claim;
    if (size == 0) continue;
    SizeVotes& of = votes[size];
    of.size = size;
    if (ballot.proven != 0) {
      (ballot.settled ? of.settled_proven : of.other_proven) += count;
    } else {
      (ballot.settled ? of.settled_claims : of.other_claims) += count;
    }
  }
  std::vector<SizeVotes> counted;
  for (const auto& [size, of] : votes) counted.push_back(of);
  return counted;
}

}  // namespace fathom
