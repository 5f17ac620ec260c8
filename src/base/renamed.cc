#include "base/renamed.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/check.h"
#include "base/text.h"

namespace fathom {
namespace {

struct ReleaseNumber {
  uint64_t major;
  uint64_t minor;
};

// Releases are written by us: anything else than "1.2.3" is a bug.
ReleaseNumber NumberOf(std::string_view release) {
  const size_t first = release.find('.');
  CHECK(first != std::string_view::npos);
  const size_t second = release.find('.', first + 1);
  CHECK(second != std::string_view::npos);
  const auto major = ParseDecimal(release.substr(0, first));
  const auto minor = ParseDecimal(release.substr(first + 1, second - first - 1));
  CHECK(major && minor);
  return {*major, *minor};
}

}  // namespace

std::string RemovedIn(std::string_view release) {
  const auto [major, minor] = NumberOf(release);
  return major == 0 ? fmt::format("0.{}.0", minor + 1) : fmt::format("{}.0.0", major + 1);
}

bool KeepsFormerName(std::string_view release, std::string_view version) {
  const ReleaseNumber renamed = NumberOf(release);
  const ReleaseNumber now = NumberOf(version);
  return renamed.major == now.major && (now.major > 0 || renamed.minor == now.minor);
}

}  // namespace fathom
