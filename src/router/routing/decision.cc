#include "router/routing/decision.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/random.h"
#include "router/fleet/prefill_work.h"
#include "router/routing/prefix_hash.h"
#include "router/routing/shuffle.h"

namespace fathom {
namespace {

size_t PlacesOf(const Decision& decision) {
  return decision.places == 0 ? decision.ranks.size() : decision.places;
}

uint32_t PositionOf(const Decision& decision, size_t i) {
  return decision.places == 0 ? static_cast<uint32_t>(i) : decision.ranks[i].position;
}

// The lowest cost; ties are broken at random, otherwise several routers in front of one idle fleet
// would all send to the first rank.
size_t Lowest(const Decision& decision) {
  const std::vector<Price>& prices = decision.prices;
  const Shuffle shuffle(decision.random, static_cast<uint32_t>(PlacesOf(decision)));
  size_t best = 0;
  for (size_t i = 1; i < prices.size(); ++i) {
    if (prices[i].cost > prices[best].cost) continue;
    const bool first =
        prices[i].cost < prices[best].cost ||
        shuffle.TurnOf(PositionOf(decision, i)) < shuffle.TurnOf(PositionOf(decision, best));
    if (first) best = i;
  }
  return best;
}

// Softmax over costs, in units of their range. As a race: every rank gets a random time, divided by
// its chance, and the first wins. So each rank's time depends on itself and the range alone.
size_t Drawn(const Decision& decision) {
  const auto [low, high] = std::ranges::minmax(decision.prices, {}, &Price::cost);
  const double lowest = std::min(low.cost, decision.others.lowest);
  const double range = std::max(high.cost, decision.others.highest) - lowest;
  size_t first = 0;
  double least = INFINITY;
  for (size_t i = 0; i < decision.prices.size(); ++i) {
    // The number that stands at this position in the decision's random sequence.
    constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;
    Random random(decision.random + kStep * PositionOf(decision, i));
    const double above = decision.prices[i].cost - lowest;
    const double handicap = range > 0 ? above / range / decision.weights.temperature : 0;
    const double time = std::log(-std::log(1 - random.Unit())) + handicap;
    if (i > 0 && time >= least) continue;
    first = i;
    least = time;
  }
  return first;
}

// A share of the prompt's whole prefill: a rank with one more request in prefill is never as good,
// one with a few more in decode may be.
constexpr double kTie = 1.0 / 32;

// Neither a hint nor chance ever beats a cache: the rank must save as much.
bool IsTie(const Decision& decision, const Price& price, const Price& best) {
  return price.reused >= best.reused && price.cost - best.cost <= TieOf(decision);
}

// Replicas that have not heard of each other's last choice would all choose the same rank.
size_t AnyAsGoodAs(const Decision& decision, size_t best) {
  const Shuffle shuffle(decision.random, static_cast<uint32_t>(PlacesOf(decision)));
  size_t first = best;
  for (size_t i = 0; i < decision.prices.size(); ++i) {
    if (!IsTie(decision, decision.prices[i], decision.prices[best])) continue;
    const bool before =
        shuffle.TurnOf(PositionOf(decision, i)) < shuffle.TurnOf(PositionOf(decision, first));
    if (before) first = i;
  }
  return first;
}

// The lowest cost, or the rank of the session's hint if that costs as much.
size_t LowestOrHinted(Decision& decision) {
  const size_t lowest = Lowest(decision);
  const size_t best = decision.several ? AnyAsGoodAs(decision, lowest) : lowest;
  if (!decision.hint) return best;
  const auto found = std::ranges::find(decision.ranks, decision.hint->rank, &RankView::rank);
  if (found == decision.ranks.end()) return best;
  const auto hinted = static_cast<size_t>(found - decision.ranks.begin());
  if (hinted != best && !IsTie(decision, decision.prices[hinted], decision.prices[lowest])) {
    return best;
  }
  RankView plain = *found;
  plain.believed = decision.hint->otherwise;
  const Price price =
      std::exchange(decision.prices[hinted], PriceOf(decision.prompt, plain, decision.weights));
  decision.hint_decided = Lowest(decision) != hinted;
  decision.prices[hinted] = price;
  return hinted;
}

double MarginOf(const Decision& decision) {
  const std::vector<Price>& prices = decision.prices;
  double second = decision.others.lowest;
  for (size_t i = 0; i < prices.size(); ++i) {
    if (i != decision.chosen) second = std::min(second, prices[i].cost);
  }
  return second == INFINITY ? 0 : second - prices[decision.chosen].cost;
}

uint32_t DepthOf(const RankView& rank) {
  return std::max({rank.cached[0], rank.cached[kTiers - 1], rank.believed});
}

// Moves those that `keep` names to the front, in their order, and forgets the others.
void KeepOnly(Decision& decision, const std::vector<bool>& keep) {
  size_t kept = 0;
  size_t chosen = 0;
  for (size_t i = 0; i < decision.ranks.size(); ++i) {
    if (!keep[i]) {
      ++decision.others.count;
      decision.others.requests += decision.ranks[i].load.requests;
      decision.others.lowest = std::min(decision.others.lowest, decision.prices[i].cost);
      decision.others.highest = std::max(decision.others.highest, decision.prices[i].cost);
      continue;
    }
    if (i == decision.chosen) chosen = kept;
    decision.ranks[kept] = decision.ranks[i];
    decision.prices[kept++] = decision.prices[i];
  }
  decision.ranks.resize(kept);
  decision.prices.resize(kept);
  decision.chosen = chosen;
}

}  // namespace

double TieOf(const Decision& decision) {
  const double tokens = static_cast<double>(decision.prompt.tokens);
  return kTie * decision.weights.prefill_scale * PrefillWork(tokens, 0);
}

void Decide(Decision& decision) {
  decision.prices.clear();
  decision.hint_decided = false;
  for (const RankView& rank : decision.ranks) {
    decision.prices.push_back(PriceOf(decision.prompt, rank, decision.weights));
  }
  if (decision.mode == RouterMode::kPrefixHash && decision.tokens_known) {
    decision.chosen = PlaceByPrefix(decision.prefix, decision.ranks, decision.bound,
                                    {decision.others.count, decision.others.requests});
  } else {
    decision.chosen = decision.weights.temperature > 0 ? Drawn(decision) : LowestOrHinted(decision);
  }
  decision.margin = MarginOf(decision);
}

void Shorten(Decision& decision) {
  const size_t count = decision.ranks.size();
  if (count <= kAllListed) return;
  if (decision.places == 0) {  // positions have been implied so far
    decision.places = count;
    for (size_t i = 0; i < count; ++i) decision.ranks[i].position = static_cast<uint32_t>(i);
  }
  std::vector<bool> keep(count);
  keep[decision.chosen] = true;
  if (decision.hint_decided) keep[Lowest(decision)] = true;  // that the hint's rank equals
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  const auto best = order.begin() + kBestListed;
  std::ranges::nth_element(order, best, {}, [&](size_t i) { return decision.prices[i].cost; });
  std::for_each(order.begin(), best, [&](size_t i) { keep[i] = true; });
  const auto holders =
      std::ranges::partition(order, [&](size_t i) { return DepthOf(decision.ranks[i]) > 0; });
  auto listed = holders.begin();
  if (std::distance(order.begin(), listed) > static_cast<std::ptrdiff_t>(kHoldersListed)) {
    listed = order.begin() + kHoldersListed;
    std::nth_element(order.begin(), listed, holders.begin(), [&](size_t a, size_t b) {
      return DepthOf(decision.ranks[a]) > DepthOf(decision.ranks[b]);
    });
  }
  std::for_each(order.begin(), listed, [&](size_t i) { keep[i] = true; });
  KeepOnly(decision, keep);
}

}  // namespace fathom
