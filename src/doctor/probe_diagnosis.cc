#include "doctor/probe_diagnosis.h"

#include <fmt/format.h>

#include <utility>

#include "doctor/cells.h"
#include "doctor/remedies.h"

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
        fmt::format("Follow-up turns take {:.0f} % of a first turn's time, with nothing else to do",
                    100 * calm.Ratio()));
    finding.why =
        "There is no pressure on memory at this load, so it is the routing or the "
        "engines' caching that does not work";
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
        fmt::format("Follow-up turns are fast alone and no longer with {} conversations at once",
                    level.at_once));
    finding.why =
        "Under that load what a turn leaves in the cache is gone, or waits behind "
        "others, when the next one comes";
    finding.evidence = {Sentence(calm), Sentence(level)};
    finding.gain = 0.5;
    finding.fixes = RemediesFor(finding.id, {});
    book.Add(std::move(finding));
    return;
  }
}

}  // namespace fathom
