#include "diagnose/findings/finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>
#include <utility>

#include "diagnose/findings/secrets.h"

namespace fathom {

std::string ToText(const FilePlace& place) {
  return place.line == 0 ? place.file : fmt::format("{}:{}", place.file, place.line);
}

Finding FitToPassOn(Finding finding) {
  for (Fix& fix : finding.fixes) {
    fix.setting = WithoutSecrets(fix.setting);
  }
  return finding;
}

Finding MakeFinding(FindingId id, std::string subject, std::string message) {
  Finding finding;
  finding.id = id;
  finding.severity = KindOf(id).severity;
  finding.subject = std::move(subject);
  finding.message = std::move(message);
  return finding;
}

void SortFindings(std::vector<Finding>& findings) {
  // Not stable_sort: with clang it warns about libstdc++'s own temporary buffer. A total order is
  // as good.
  std::ranges::sort(findings, {}, [](const Finding& finding) {
    const double gain = std::isnan(finding.gain) ? 0 : finding.gain;
    return std::tuple(finding.severity, -gain, finding.id,
                      std::tie(finding.place.file, finding.place.line),
                      std::string_view(finding.subject), std::string_view(finding.message));
  });
}

}  // namespace fathom
