#include "router/routing/candidate_search.h"

#include <algorithm>
#include <limits>

namespace fathom {
namespace {

// As many ranks of the least possible cost are enough, if so many tries find them.
constexpr size_t kEnoughTies = 4;
constexpr uint32_t kTries = 16;
// For a rank that is as good as equal to the best one: those that are looked at, and passed over.
constexpr uint32_t kScatterLooks = 128;
constexpr uint32_t kScatterTurns = 4096;

}  // namespace

bool CandidateSearch::Run(const Question& question) {
  const Decision& decision = question.decision;
  finalists_.clear();
  lowest_other_ = INFINITY;
  any_free_ = question.any_free;
  shuffle_ = Shuffle(decision.random, static_cast<uint32_t>(decision.places));
  PriceListed(question);
  floors_.clear();
  for (uint32_t part = 0; part < question.roster.parts().size(); ++part) {
    floors_.push_back(FloorOf(question, part));
  }
  Probe(question);
  VisitPromising(question);
  BreakTies(question);
  if (!FindRoom(question)) return false;
  Scatter(question);
  Finish(question);
  return true;
}

double CandidateSearch::CostOf(const Question& question, const RankView& view) {
  return PriceOf(question.decision.prompt, view, question.decision.weights).cost;
}

void CandidateSearch::PriceListed(const Question& question) {
  listed_best_ = listed_second_ = INFINITY;
  for (const RankView& rank : question.decision.ranks) {
    const Price price = PriceOf(question.decision.prompt, rank, question.decision.weights);
    const double cost = price.cost;
    const uint32_t turn = shuffle_.TurnOf(rank.position);
    listed_second_ = std::min(listed_second_, std::max(cost, listed_best_));
    if (cost < listed_best_ || (cost == listed_best_ && turn < listed_turn_)) {
      listed_turn_ = turn;
      listed_reused_ = price.reused;
    }
    listed_best_ = std::min(listed_best_, cost);
  }
}

double CandidateSearch::best() const {
  return finalists_.empty() ? listed_best_ : std::min(listed_best_, finalists_[0].cost);
}

double CandidateSearch::second() const {
  if (finalists_.empty()) return listed_second_;
  const double mine = finalists_.size() > 1 ? finalists_[1].cost : INFINITY;
  return std::min({std::max(listed_best_, finalists_[0].cost), listed_second_, mine});
}

// No rank of the part that holds nothing of the prompt costs less. Each part of a price grows with
// the numbers that are the least here, also after rounding.
double CandidateSearch::FloorOf(const Question& question, uint32_t part) {
  const LoadBlock* const block = question.roster.parts()[part].block.get();
  if (block == nullptr || block->ranks() == 0) return -INFINITY;
  const uint64_t free =
      question.held_known ? question.roster.MostFree(part) : std::numeric_limits<uint64_t>::max();
  const auto cost = [&](const std::optional<LoadFloor>& least) {
    if (!least) return static_cast<double>(INFINITY);
    RankView view;
    view.load.backlog = least->backlog;
    view.load.context = least->context;
    view.load.requests = least->requests;
    view.SetFree(free);
    return CostOf(question, view);
  };
  return std::min(cost(block->Free()), cost(block->Queued()));
}

// In an idle fleet almost any rank costs as little as one can. The first ones by the shuffled order
// are then the result, and no part needs to be visited.
void CandidateSearch::Probe(const Question& question) {
  const Roster& roster = question.roster;
  const double least = std::ranges::min(floors_);
  if (least >= listed_second_) return;
  uint32_t tries = kTries;
  for (uint32_t turn = 0; turn < shuffle_.turns() && tries > 0; ++turn) {
    const uint32_t position = shuffle_.PositionAt(turn);
    if (position >= roster.size()) continue;
    --tries;
    if (floors_[roster.PartOf(position)] == least) Consider(question, position);
    if (finalists_.size() >= kEnoughTies && finalists_[kEnoughTies - 1].cost == least) return;
  }
}

// The most promising part first: after it most others are too expensive.
void CandidateSearch::VisitPromising(const Question& question) {
  const auto least = std::ranges::min_element(floors_);
  if (*least >= second()) return;
  Visit(question, static_cast<uint32_t>(least - floors_.begin()));
  for (uint32_t part = 0; part < floors_.size(); ++part) {
    if (floors_[part] < second()) Visit(question, part);
  }
}

void CandidateSearch::Visit(const Question& question, uint32_t part) {
  floors_[part] = INFINITY;
  const Roster::Part& range = question.roster.parts()[part];
  for (uint32_t i = range.begin; i < range.end; ++i) question.roster.at(i).rank->load.Prefetch();
  for (uint32_t i = range.begin; i < range.end; ++i) Consider(question, i);
}

void CandidateSearch::Consider(const Question& question, uint32_t position) {
  Roster& roster = question.roster;
  if (roster.IsExcluded(position) || roster.SlotOf(position) != Roster::kNone) return;
  roster.SetSlot(position, Roster::kSeen);
  if (any_free_ && finalists_.size() == kBestListed) {
    const Finalist least{.cost = CostOf(question, question.views.Glance(position)),
                         .turn = shuffle_.TurnOf(position)};
    if (finalists_.back() < least) {
      lowest_other_ = std::min(lowest_other_, least.cost);
      return;
    }
  }
  const RankView view = question.views.Look(position);
  const Room room = question.views.RoomOf(view);
  if (room == Room::kFull) {
    std::vector<RankLabel>& full = question.decision.full;
    if (full.size() < Decision::kMostFull) full.push_back(view.rank);
    return;
  }
  any_free_ = any_free_ || room == Room::kFree;
  Offer(CostOf(question, view), view);
}

void CandidateSearch::Offer(double cost, const RankView& view) {
  Finalist finalist{
      .cost = cost, .turn = shuffle_.TurnOf(view.position), .view = finalists_.size()};
  if (finalists_.size() == kBestListed) {
    const bool worse = finalists_.back() < finalist;
    lowest_other_ = std::min(lowest_other_, worse ? cost : finalists_.back().cost);
    if (worse) return;
    finalist.view = finalists_.back().view;
    finalists_.pop_back();
  }
  views_[finalist.view] = view;
  finalists_.insert(std::upper_bound(finalists_.begin(), finalists_.end(), finalist), finalist);
}

// Parts that were passed over may still have ranks that cost exactly as little as the best one: in
// an idle fleet almost all do. The first of them by the shuffled order is wanted.
void CandidateSearch::BreakTies(const Question& question) {
  const double lowest = best();
  if (std::ranges::find(floors_, lowest) == floors_.end()) return;
  const Roster& roster = question.roster;
  for (uint32_t turn = 0; turn < shuffle_.turns(); ++turn) {
    const uint32_t position = shuffle_.PositionAt(turn);
    if (position >= roster.size() || roster.IsExcluded(position)) continue;
    // Finalists have the first turns of the visited parts; a listed rank that is as cheap ends the
    // search as well.
    if (!finalists_.empty() && finalists_[0].cost == lowest && finalists_[0].turn <= turn) return;
    const uint32_t slot = roster.SlotOf(position);
    if (slot == Roster::kSeen) continue;
    if (slot != Roster::kNone) {
      if (CostOf(question, question.decision.ranks[slot]) == lowest) return;
    } else if (floors_[roster.PartOf(position)] == lowest) {
      Consider(question, position);
    }
  }
}

bool CandidateSearch::FindRoom(const Question& question) {
  for (uint32_t part = 0; part < floors_.size() && !any_free_; ++part) {
    if (floors_[part] != INFINITY) Visit(question, part);
  }
  return any_free_;
}

// Whether the best rank reuses nothing, as those that are not listed.
bool CandidateSearch::UnlistedMayTie() const {
  if (finalists_.empty()) return false;
  const Finalist& mine = finalists_[0];
  const bool listed_is_best =
      listed_best_ < mine.cost || (listed_best_ == mine.cost && listed_turn_ < mine.turn);
  return !listed_is_best || listed_reused_ == 0;
}

// The finalists are the same for all replicas, which have not heard yet what each other chooses
// now: a burst would meet on these few. So the first rank by the shuffled order that is as good as
// equal joins them, and is what Decide() then takes.
void CandidateSearch::Scatter(const Question& question) {
  scattered_.reset();
  if (!question.decision.several || !UnlistedMayTie()) return;
  const Roster& roster = question.roster;
  const double most = best() + TieOf(question.decision);
  uint32_t looks = kScatterLooks;
  const uint32_t turns = std::min(shuffle_.turns(), kScatterTurns);
  for (uint32_t turn = 0; turn < turns; ++turn) {
    const uint32_t position = shuffle_.PositionAt(turn);
    if (position >= roster.size() || roster.IsExcluded(position)) continue;
    const uint32_t slot = roster.SlotOf(position);
    if (slot != Roster::kNone && slot != Roster::kSeen) continue;  // it is listed
    const double floor = floors_[roster.PartOf(position)];
    if (floor != INFINITY && floor > most) continue;
    const auto is_here = [&](const Finalist& finalist) {
      return views_[finalist.view].position == position;
    };
    const bool finalist = std::ranges::any_of(finalists_, is_here);
    const RankView view = question.views.Look(position);
    if (CostOf(question, view) <= most && question.views.RoomOf(view) != Room::kFull) {
      if (!finalist) scattered_ = view;
      return;
    }
    if (--looks == 0) return;
  }
}

void CandidateSearch::Finish(const Question& question) {
  Decision& decision = question.decision;
  for (const Finalist& finalist : finalists_) decision.ranks.push_back(views_[finalist.view]);
  if (scattered_) decision.ranks.push_back(*scattered_);
  const size_t looked_at = decision.ranks.size() + decision.full.size();
  decision.others.count =
      question.roster.present() - std::min<size_t>(question.roster.present(), looked_at);
  decision.others.lowest = std::min(lowest_other_, std::ranges::min(floors_));
}

}  // namespace fathom
