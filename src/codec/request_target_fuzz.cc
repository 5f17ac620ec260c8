// No path that passes is read differently by a server that decodes it (once or twice), treats
// backslashes as slashes, merges slashes, cuts off parameters, or resolves dot segments.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "codec/request_target.h"
#include "codec/url.h"

namespace fathom {
namespace {

size_t Count(std::string_view text, char c) {
  size_t count = 0;
  for (const char other : text) count += other == c ? 1 : 0;
  return count;
}

// The depth of each segment as a lenient server sees it; dot segments change it.
void CheckSegments(std::string_view path, size_t slashes) {
  CHECK(Count(path, '\\') == 0 && Count(path, '/') == slashes);
  for (std::string_view segment : SplitAny(path, "/")) {
    segment = segment.substr(0, segment.find(';'));
    CHECK(segment != "." && segment != "..");
  }
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  const std::string_view target(reinterpret_cast<const char*>(data), size);
  const RequestTarget parts = RequestTarget::Of(target);
  CHECK(parts.path.size() + parts.query.size() + parts.authority.size() <= target.size() + 1);
  CHECK(parts.path.find('?') == parts.path.npos);
  CHECK(parts.query.empty() || parts.query.front() == '?');
  if (!HasOneReading(parts.path)) return 0;
  CHECK(!HasDotSegments(parts.path));
  const size_t slashes = Count(parts.path, '/');
  const std::string once = PercentDecode(parts.path);
  CheckSegments(parts.path, slashes);
  CheckSegments(once, slashes);
  CHECK(PercentDecode(once) == once);
  return 0;
}
