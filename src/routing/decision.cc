#include "routing/decision.h"

#include <algorithm>
#include <cmath>

#include "routing/prefix_hash.h"

namespace fathom {
namespace {

// The lowest; ties at random, or several routers in front of one idle fleet would all pick the
// first.
size_t Lowest(const std::vector<Price>& prices, Random& random) {
  size_t best = 0;
  uint64_t ties = 1;
  for (size_t i = 1; i < prices.size(); ++i) {
    if (prices[i].cost > prices[best].cost) continue;
    ties = prices[i].cost < prices[best].cost ? 1 : ties + 1;
    if (random.Below(ties) == 0) best = i;
  }
  return best;
}

// Softmax over costs, in units of their range.
size_t Drawn(const std::vector<Price>& prices, double temperature, Random& random) {
  const auto [low, high] = std::ranges::minmax(prices, {}, &Price::cost);
  const double range = high.cost - low.cost;
  if (range <= 0) return random.Below(prices.size());
  const auto chance = [&](const Price& price) {
    return std::exp(-(price.cost - low.cost) / range / temperature);
  };
  double sum = 0;
  for (const Price& price : prices) sum += chance(price);
  double left = random.Unit() * sum;
  for (size_t i = 0; i < prices.size(); ++i) {
    left -= chance(prices[i]);
    if (left < 0) return i;
  }
  return Lowest(prices, random);  // rounding ate the rest
}

double MarginOf(const std::vector<Price>& prices, size_t chosen) {
  double second = INFINITY;
  for (size_t i = 0; i < prices.size(); ++i) {
    if (i != chosen) second = std::min(second, prices[i].cost);
  }
  return prices.size() < 2 ? 0 : second - prices[chosen].cost;
}

}  // namespace

void Choose(Decision& decision) {
  decision.prices.clear();
  for (const RankView& rank : decision.ranks) {
    decision.prices.push_back(PriceOf(decision.prompt, rank, decision.weights));
  }
  Random random(decision.random);
  const double temperature = decision.weights.temperature;
  if (decision.mode == RouterMode::kPrefixHash && decision.tokens_known) {
    decision.chosen = PlaceByPrefix(decision.prefix, decision.ranks, decision.bound);
  } else {
    decision.chosen = temperature > 0 ? Drawn(decision.prices, temperature, random)
                                      : Lowest(decision.prices, random);
  }
  decision.margin = MarginOf(decision.prices, decision.chosen);
}

}  // namespace fathom
