#include "gateway/request_witness.h"

namespace fathom {

RequestWitness::RequestWitness(GatewayContext& context, Steering& steering,
                               const Steering::Choice& choice, const RouteQuestion& question,
                               const About& about, TimePoint now)
    : context_(context),
      decision_(choice.decision->number),
      testimony_(context.cache_index == nullptr ? nullptr : context.cache_index->lost(), steering,
                 choice, question, about, now) {}

void RequestWitness::End(std::optional<uint32_t> cached, TimePoint now) {
  const auto outcome = testimony_.End(cached, now);
  if (!outcome) return;
  context_.metrics.CountOutcome(outcome->predicted, outcome->found, outcome->waste);
  context_.steering.ring.Complete(decision_, cached, outcome->waste);
}

}  // namespace fathom
