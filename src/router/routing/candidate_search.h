// Which few of many ranks can be the cheapest for this prompt?
//
// Ranks that hold a part of the prompt are listed by the caller, one by one. The others differ by
// load alone: a block of them whose least load would already cost too much is passed over. The
// result is that of a look at every rank: the same choice, the same runner-up. If replicas choose
// at the same time, a rank that is as good as equal is looked for among a bounded number.
//
// Threads  One.
// Cost     Grows with the number of blocks, and with the ranks of those few that are looked at.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "router/routing/decision.h"
#include "router/routing/roster.h"
#include "router/routing/saturation.h"
#include "router/routing/shuffle.h"

namespace fathom {

class CandidateSearch {
 public:
  class Views {
   public:
    // A rank that is not listed, at this moment.
    virtual RankView Look(uint32_t position) = 0;
    // Its load alone, and at most its real cost: for a first, cheaper look.
    virtual RankView Glance(uint32_t position) = 0;
    // Whether it has room for the prompt.
    virtual Room RoomOf(const RankView& rank) = 0;

   protected:
    ~Views() = default;
  };
  struct Question {
    Roster& roster;
    Decision& decision;  // its inputs, and the listed ranks
    Views& views;
    bool held_known = true;  // caches are known, and with them what must be evicted
    bool any_free = true;    // a listed rank has room, or none is needed
  };
  // Adds the best of the ranks that are not listed to the decision, and counts the others. False:
  // no rank has room.
  bool Run(const Question& question);

 private:
  struct Finalist {
    double cost = 0;
    uint32_t turn = 0;  // for ties
    size_t view = 0;    // in views_
    bool operator<(const Finalist& other) const {
      return cost != other.cost ? cost < other.cost : turn < other.turn;
    }
  };

  void PriceListed(const Question& question);
  static double CostOf(const Question& question, const RankView& view);
  double FloorOf(const Question& question, uint32_t part);
  void Visit(const Question& question, uint32_t part);
  void Consider(const Question& question, uint32_t position);
  void Offer(double cost, const RankView& view);
  void Probe(const Question& question);
  void VisitPromising(const Question& question);
  void BreakTies(const Question& question);
  void Scatter(const Question& question);
  bool UnlistedMayTie() const;
  bool FindRoom(const Question& question);
  void Finish(const Question& question);
  double best() const;
  double second() const;

  std::vector<double> floors_;       // of each part; of visited ones: infinity
  std::vector<Finalist> finalists_;  // sorted
  std::array<RankView, kBestListed> views_;
  std::optional<RankView> scattered_;
  double listed_best_ = 0;
  uint32_t listed_turn_ = 0;  // of that rank
  double listed_reused_ = 0;  // tokens, of that rank
  double listed_second_ = 0;
  double lowest_other_ = 0;
  bool any_free_ = false;
  Shuffle shuffle_{0, 1};
};

}  // namespace fathom
