#include "lab/replay/virtual_trust.h"

#include "router/fleet/trust_keeper.h"

namespace fathom {
namespace {

// Between two looks at an engine's metrics (--engine-load-interval).
constexpr Duration kAsksEvery = std::chrono::seconds(2);

}  // namespace

void VirtualTrust::Look(const VirtualEngine& engine, RankWitness& witness, const EventPath& path,
                        TimePoint now) {
  const auto [at, is_new] = seen_.try_emplace(engine.number());
  Seen& seen = at->second;
  if (is_new || now - seen.asked >= kAsksEvery) {
    seen.asked = now;
    seen.preemptions = engine.core().counters().preemptions;
  }
  const EventPath::Heard& heard = path.heard();
  const RankFacts facts{.agreed = {heard.proven ? TrustState::kTrusted : TrustState::kLearning,
                                   TrustCause::kNone,
                                   {}},
                        .preemptions = seen.preemptions,
                        .batches = heard.batches,
                        .stored = heard.stored,
                        .removed = heard.pulse.removed,
                        .held = heard.held,
                        .lost = heard.lost,
                        .gaps = heard.lost,
                        .pulse = heard.pulse};
  const Trust trust = witness.Judge(rules_, facts, now).trust;
  if (trust.state != seen.trust.state || trust.cause != seen.trust.cause) {
    changes_.push_back({now, engine.number(), trust.state, trust.cause});
  }
  seen.trust = trust;
}

void VirtualTrust::Looked(TimePoint now) { next_ = now + TrustKeeper::kInterval; }

}  // namespace fathom
