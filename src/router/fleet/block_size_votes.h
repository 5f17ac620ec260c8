// Which block sizes do the workers of a model support, and whose reports can be believed?
//
// Every worker has one ballot, which it replaces when something about it changes. Equal ballots are
// counted, not listed: the cost depends on how many different ones there are, not on the workers.
//
// Threads  One.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "engine/engine_kind.h"

namespace fathom {

// What one worker contributes to the size of its model.
struct Ballot {
  EngineKind engine = EngineKind::kUnknown;
  uint32_t report = 0;        // 0: none
  uint32_t proven = 0;        // by events; 0: none
  uint32_t remembered = 0;    // proven by an earlier process
  bool contradicted = false;  // its events contradict the report
  bool votes = false;         // it is here, or was accepted and is away
  bool settled = false;       // it was accepted with a size that matches the model's

  friend auto operator<=>(const Ballot&, const Ballot&) = default;
};

// The workers that support a size. Settled workers rank first, so that newcomers do not change the
// size of a running fleet.
struct SizeVotes {
  uint32_t size = 0;
  size_t settled_proven = 0;
  size_t settled_claims = 0;
  size_t other_proven = 0;
  size_t other_claims = 0;

  size_t proven() const { return settled_proven + other_proven; }
  size_t all() const { return proven() + settled_claims + other_claims; }
};

class BallotBox {
 public:
  void Add(const Ballot& ballot) { ++ballots_[ballot]; }
  void Remove(const Ballot& ballot);

  // Whether the report of such a worker counts: none of its engine contradicts the same report, or
  // one confirms it.
  bool Believes(const Ballot& ballot) const;
  // The reports that are not believed although they are not contradicted by their own worker.
  using Doubts = std::vector<std::pair<EngineKind, uint32_t>>;
  Doubts AllDoubts() const;
  // By size.
  std::vector<SizeVotes> Count() const;

 private:
  std::map<Ballot, size_t> ballots_;  // engine and report come first, so alike ones are neighbours
};

}  // namespace fathom
