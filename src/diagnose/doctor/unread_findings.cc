#include "diagnose/doctor/unread_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "diagnose/doctor/remedies.h"
#include "diagnose/doctor/trust_findings.h"
#include "diagnose/manifest/identity.h"

namespace fathom {
namespace {

// What the words of /health and the log mean. A reason that this version does not know has none.
std::string_view MeaningOf(std::string_view reason) {
  if (reason == "no_tokenizer") return "the router has no tokenizer, and no engine tokenizes";
  if (reason == "template") return "the router cannot use the model's chat template";
  if (reason == "timeout") return "no engine tokenized in time";
  if (reason == "error") return "engines fail to tokenize";
  if (reason == "overload") return "too many prompts were being tokenized at once";
  if (reason == "too_long") return "the text is too long";
  if (reason == "media") return "the prompt begins with media";
  if (reason == "continued") return "the prompt continues a response that only an engine has";
  if (reason == "truncated") return "the request lets the engine truncate the prompt";
  return "";
}

std::string Reason(std::string_view reason) {
  const std::string_view meaning = MeaningOf(reason);
  if (reason.empty()) return "not reported";
  return meaning.empty() ? std::string(reason) : fmt::format("{} ({})", reason, meaning);
}

std::string OrUnknown(const std::string& text) { return text.empty() ? "unknown" : text; }

}  // namespace

Finding UnreadFinding(const SaidUnread& said) {
  Finding finding = MakeFinding(
      FindingId::kPromptsUnread, fmt::format("model {}", said.model),
      fmt::format("The router does not read the prompts of model {}: they are routed by load alone",
                  said.model));
  finding.why =
      "Requests still succeed, but no cached prefix is used except by chance, even if every rank "
      "is trusted";
  finding.evidence.push_back(
      fmt::format("{}: model {}: {} unread; the latest: route {}, engine {}, reason {}",
                  said.source, said.model, said.unread.empty() ? "prompts" : said.unread,
                  OrUnknown(said.route), OrUnknown(said.engine), Reason(said.reason)));
  if (said.cost_tokens > 0) {
    finding.evidence.push_back(
        fmt::format("model {}: {} prompt tokens were routed without their "
                    "prefix so far",
                    said.model, said.cost_tokens));
  }
  // It was measured, so it weighs more than any setting that looks wrong.
  finding.gain = std::clamp(said.share, 0.5, 1.0);
  finding.gain_basis = "as judged by the running router";
  std::vector<Fix> remedies =
      RemediesFor(FindingId::kPromptsUnread,
                  {.engine = EngineNamed(said.engine), .router = RouterKind::kFathom});
  if (!said.fix.empty()) {
    finding.fixes.push_back({.what = Capitalised(said.fix),
                             .setting = {},
                             .diff = {},
                             .cost = remedies.front().cost,
                             .verify = remedies.front().verify});
  }
  for (Fix& fix : remedies) finding.fixes.push_back(std::move(fix));
  return finding;
}

}  // namespace fathom
