#include "diagnose/doctor/probe_diagnosis.h"

#include <fmt/format.h>

#include <utility>

#include "diagnose/doctor/cells.h"
#include "diagnose/doctor/remedies.h"

namespace fathom {
namespace {

// A follow-up that takes this share of a first turn's time has found little in any cache.
constexpr double kNoFaster = 0.9;

std::string Sentence(const ProbeLevel& level) {
  std::string text = fmt::format(
      "probe, {} at once: first turns {:.0f} ms, follow-ups {:.0f} ms to the first token (medians "
      "of {} and {})",
      level.at_once, Milliseconds(level.first_turns.median), Milliseconds(level.follow_ups.median),
      level.first_turns.turns, level.follow_ups.turns);
  if (level.follow_ups.told > 0 && level.follow_ups.prompt_tokens > 0) {
    text += fmt::format("; engines found {} of {} prompt tokens", level.follow_ups.cached_tokens,
                        level.follow_ups.prompt_tokens);
  }
  return text;
}

}  // namespace

void DiagnoseProbe(const ProbeReport& probe, FindingBook& book) {
  if (probe.levels.empty()) return;
  const ProbeLevel& calm = probe.levels.front();
  if (calm.Ratio() > kNoFaster) {
    Finding finding = MakeFinding(
        FindingId::kFollowUpsSlow, "",
        fmt::format("Follow-up turns take {:.0f} % of a first turn's time, without other load",
                    100 * calm.Ratio()));
    finding.why =
        "There is no memory pressure at this load, so the routing or the engines' prefix caching "
        "does not work";
    for (const ProbeLevel& level : probe.levels) finding.evidence.push_back(Sentence(level));
    finding.gain = 0.9;
    finding.fixes = RemediesFor(finding.id, {});
    book.Add(std::move(finding));
    return;
  }
  for (const ProbeLevel& level : probe.levels) {
    if (calm.Ratio() <= 0 || level.Ratio() <= kNoFaster) continue;
    Finding finding = MakeFinding(
        FindingId::kMemoryPressure, "",
        fmt::format("Follow-up turns are fast without load, but slow with {} conversations at once",
                    level.at_once));
    finding.why =
        "Under that load a turn's blocks are evicted before the next turn comes, or the next turn "
        "waits behind other requests";
    finding.evidence = {Sentence(calm), Sentence(level)};
    finding.gain = 0.5;
    finding.fixes = RemediesFor(finding.id, {});
    book.Add(std::move(finding));
    return;
  }
}

}  // namespace fathom
