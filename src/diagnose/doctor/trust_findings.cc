#include "diagnose/doctor/trust_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fathom {
namespace {

FindingId IdOf(std::string cause) {
  std::ranges::replace(cause, '_', '-');
  return FindingNamed(cause).value_or(FindingId::kIndexEmpty);
}

// Workers that disagree with each other, whether or not a size is set on the router: advice to take
// the setting away alone would lead nowhere.
FindingId RemedyFor(FindingId id, const SaidDoubt& doubt) {
  const bool among_workers = doubt.fix.contains("--block-size-conflict=mixed");
  return id == FindingId::kBlockSizeMismatch && among_workers ? FindingId::kBlockSizeConflict : id;
}

}  // namespace

std::string Capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

Finding DoubtFinding(const SaidDoubt& doubt) {
  const FindingId id = IdOf(doubt.cause);
  Finding finding = MakeFinding(id, fmt::format("{} rank {}", doubt.url, doubt.rank),
                                fmt::format("The router doubts a rank: {}", KindOf(id).title));
  finding.why =
      "Requests still succeed, but the rank is routed by load, or its predicted hits are scaled "
      "down";
  finding.evidence.push_back(fmt::format("{}: {} rank {} is doubted for {}: {}", doubt.source,
                                         doubt.url, doubt.rank, doubt.cause, doubt.evidence));
  if (doubt.cost_tokens > 0) {
    finding.evidence.push_back(
        fmt::format("{} rank {}: {} prompt tokens were prefilled unnecessarily so far", doubt.url,
                    doubt.rank, doubt.cost_tokens));
  }
  // A doubt that was measured weighs more than any setting that looks wrong.
  finding.gain = std::max(0.5, doubt.share);
  finding.gain_basis = "as judged by the running router";
  std::vector<Fix> remedies =
      RemediesFor(RemedyFor(id, doubt), {.engine = doubt.engine, .router = RouterKind::kFathom});
  if (!doubt.fix.empty()) {
    Fix said{.what = Capitalised(doubt.fix)};
    if (!remedies.empty()) {
      said.cost = remedies.front().cost;
      said.verify = "GET /health: the rank is trusted again";
    }
    finding.fixes.push_back(std::move(said));
  }
  for (Fix& fix : remedies) finding.fixes.push_back(std::move(fix));
  return finding;
}

}  // namespace fathom
