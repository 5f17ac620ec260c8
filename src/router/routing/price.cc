#include "router/routing/price.h"

#include <algorithm>

#include "router/fleet/prefill_work.h"

namespace fathom {
namespace {

// The share of a prefill's time by which it delays requests that are being decoded.
constexpr double kDisturbance = 0.5;

// The cost of an evicted token, in tokens of prefill: the probability that it is needed again.
constexpr double kEviction = 0.5;

double Between(uint32_t more, uint32_t less) { return more > less ? more - less : 0; }

// Cached tokens; those in slower memory count less.
double Credited(const RankView& rank, const Weights& weights) {
  const double device = rank.cached[0];
  const double host = Between(rank.cached[1], rank.cached[0]);
  const double disk = Between(rank.cached[kTiers - 1], std::max(rank.cached[0], rank.cached[1]));
  const double confirmed = device + weights.host_hit * host + weights.disk_hit * disk;
  return weights.overlap_credit * rank.trust *
         std::max(confirmed, static_cast<double>(rank.believed));
}

double Evicted(const RankView& rank, double fresh) {
  if (rank.capacity == 0) return 0;
  const double free =
      rank.capacity > rank.held ? static_cast<double>(rank.capacity - rank.held) : 0;
  return std::max(fresh - free, 0.0);
}

}  // namespace

Price PriceOf(const PromptView& prompt, const RankView& rank, const Weights& weights) {
  Price price;
  const double tokens = prompt.tokens;
  // The last token is always computed.
  price.reused = std::min(Credited(rank, weights), std::max(tokens - 1, 0.0));
  const double fresh = tokens - price.reused;
  price.work = PrefillWork(fresh, price.reused) * rank.slowness;
  price.evicted = Evicted(rank, fresh);
  price.prefill = rank.load.backlog * rank.slowness +
                  price.work * (1 + kDisturbance + prompt.pressure) + kEviction * price.evicted;
  price.decode = static_cast<double>(rank.load.context) + Between(prompt.tokens, rank.shared);
  price.cost = weights.prefill_scale * price.prefill + price.decode +
               weights.active_request * rank.load.requests;
  return price;
}

}  // namespace fathom
