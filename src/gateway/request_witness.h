// A request's testimony (routing/testimony.h), and what the metrics and the list of decisions hear
// of it.
//
// Threads  One, the loop's.
#pragma once

#include <cstdint>
#include <optional>

#include "gateway/gateway_context.h"
#include "routing/testimony.h"

namespace fathom {

class RequestWitness {
 public:
  using About = Testimony::About;
  // The decision that `steering` just made, with its number. The fleet must outlive it.
  RequestWitness(GatewayContext& context, Steering& steering, const Steering::Choice& choice,
                 const RouteQuestion& question, const About& about, TimePoint now);

  void FirstByte(TimePoint now) { testimony_.FirstByte(now); }
  // After FirstByte(). `cached` is what the engine says, if it does.
  void End(std::optional<uint32_t> cached, TimePoint now);

 private:
  GatewayContext& context_;
  const uint64_t decision_;
  Testimony testimony_;
};

}  // namespace fathom
