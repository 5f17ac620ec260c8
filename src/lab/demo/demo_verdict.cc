#include "lab/demo/demo_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/docs_links.h"
#include "lab/demo/demo_canvas.h"
#include "router/fleet/trust.h"

namespace fathom {
namespace {

// Two measurements, each with the name of what was measured.
struct Comparison {
  std::string first_name;
  LatencyMoment first;
  std::string second_name;
  LatencyMoment second;
};

Comparison ComparisonOf(const DemoMoment& moment) {
  const SideMoment& side = moment.sides[0];
  if (moment.sides.size() == 1) return {"follow-up", side.follow_up, "first turn", side.first_turn};
  const SideMoment& other = moment.sides[1];
  return {Printable(side.router_mode), side.follow_up, Printable(other.router_mode),
          other.follow_up};
}

bool Enough(const LatencyMoment& latency) {
  return latency.count >= kLeastSamples && latency.p50 > Duration::zero();
}

// "6.0 times sooner", "3.0 times later", or empty if there is no difference to speak of.
std::string Difference(const Comparison& c) {
  const double ratio = Seconds(c.second.p50) / Seconds(c.first.p50);
  if (ratio >= 1.05) return fmt::format("{:.1f} times sooner", ratio);
  if (ratio <= 0.95) return fmt::format("{:.1f} times later", 1 / ratio);
  return "";
}

std::string Headline(const DemoMoment& moment, const Comparison& c) {
  const std::string difference = Difference(c);
  const bool same = difference.empty();
  if (moment.sides.size() == 1) {
    return fmt::format("With {}, follow-up turns start {} first turns",
                       Printable(moment.sides[0].router_mode),
                       same ? "about as soon as" : difference + " than");
  }
  if (same) {
    return fmt::format("Follow-up turns start about as soon with {} as with {}", c.first_name,
                       c.second_name);
  }
  return fmt::format("Follow-up turns start {} with {} than with {}", difference, c.first_name,
                     c.second_name);
}

std::string Measured(const std::string& name, const LatencyMoment& latency) {
  return fmt::format("{} {} (n={})", name, TimeText(latency.p50),
                     AmountText(static_cast<double>(latency.count)));
}

std::string Samples(const std::string& name, const LatencyMoment& latency) {
  return fmt::format("{} {} of {}", name, std::min(latency.count, kLeastSamples), kLeastSamples);
}

std::string TrustSummary(const SideMoment& side) {
  const auto trusted = std::ranges::count(side.workers, "trusted", &WorkerMoment::trust);
  const std::string mode = Printable(side.router_mode);
  if (static_cast<size_t>(trusted) == side.workers.size()) {
    return fmt::format("{}: all workers are trusted, their KV events describe their caches", mode);
  }
  return fmt::format("{}: {} of {} workers are trusted by their KV events", mode, trusted,
                     side.workers.size());
}

std::string_view RunbookNamed(std::string_view cause) {
  for (size_t i = 0; i < kTrustCauses; ++i) {
    const auto known = static_cast<TrustCause>(i);
    if (Name(known) == cause) return RunbookOf(known);
  }
  return "";
}

}  // namespace

bool HasVerdict(const DemoMoment& moment) {
  if (moment.sides.empty()) return false;
  const Comparison c = ComparisonOf(moment);
  return Enough(c.first) && Enough(c.second);
}

std::vector<std::string> RenderVerdict(const DemoMoment& moment) {
  if (moment.sides.empty()) return {};
  const Comparison c = ComparisonOf(moment);
  if (HasVerdict(moment)) {
    return {Headline(moment, c),
            fmt::format("p50 time to first token: {}, {}", Measured(c.first_name, c.first),
                        Measured(c.second_name, c.second))};
  }
  return {"Measuring the time to first token of follow-up turns; too early to compare",
          fmt::format("samples: {}, {}", Samples(c.first_name, c.first),
                      Samples(c.second_name, c.second))};
}

std::string RenderScene(const DemoMoment& moment) {
  const bool two = moment.sides.size() == 2;
  const size_t workers = moment.sides.empty() ? 0 : moment.sides[0].workers.size();
  return fmt::format("{} workers, {} people{}", workers, moment.people,
                     two ? ", the same conversations on both sides" : "");
}

std::string RenderFault(const SideMoment& side) {
  if (!side.uses_events) return "";
  const FaultMoment& fault = side.fault;
  const std::string name = Printable(fault.worker);
  const std::string recomputed = AmountText(static_cast<double>(fault.recomputed));
  switch (fault.stage) {
    case FaultStage::kNone:
      return TrustSummary(side);
    case FaultStage::kBroken:
      return fmt::format("{} loses every second batch of its KV events since {}", name,
                         ElapsedText(fault.broken_at));
    case FaultStage::kDoubted:
      return fmt::format("{} is doubted ({}): reused {} -> {}, {} tokens recomputed", name,
                         Printable(fault.cause), ShareText(fault.reused_before),
                         ShareText(side.reused_lately), recomputed);
    case FaultStage::kRepaired:
      return fmt::format("{} was repaired at {}; its doubt ends 10 s after the last loss", name,
                         ElapsedText(fault.repaired_at));
    case FaultStage::kTrusted:
      return fmt::format("{} is trusted again since {}; {} tokens recomputed in between", name,
                         ElapsedText(fault.trusted_at), recomputed);
  }
  std::unreachable();
}

std::string RenderFaultAdvice(const SideMoment& side) {
  const FaultMoment& fault = side.fault;
  if (!side.uses_events || fault.stage != FaultStage::kDoubted) return "";
  return fmt::format("The router cleared its index of {}. Fix: {}", Printable(fault.worker),
                     DocsLinks().To(RunbookNamed(fault.cause)));
}

}  // namespace fathom
