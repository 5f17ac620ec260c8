// However an object is split, the same member is found in it, and it is the one that a scanner of
// the whole object finds.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "codec/json_member.h"
#include "codec/json_scan.h"

namespace fathom {
namespace {

constexpr std::string_view kName = "usage";

std::optional<std::string> FindInPieces(std::string_view in, size_t piece) {
  JsonMemberFinder finder(kName);
  while (!in.empty()) {
    // A separate copy, so that a sanitizer detects reads past the end.
    const std::vector<char> now(in.begin(), in.begin() + std::min(piece, in.size()));
    finder.Feed({now.data(), now.size()});
    in.remove_prefix(now.size());
  }
  const auto value = finder.value();
  return value ? std::optional<std::string>(*value) : std::nullopt;
}

// False if it is not a JSON object.
bool Scan(std::string_view document, std::optional<std::string>& value) {
  JsonScanner scanner(document);
  for (;;) {
    const auto member = scanner.Next();
    if (!member) return false;
    if (!*member) return true;
    if (JsonKeyIs((*member)->key, kName)) value = (*member)->value;
  }
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  const std::string_view in(reinterpret_cast<const char*>(data), size);
  const auto whole = FindInPieces(in, std::max<size_t>(size, 1));
  for (const size_t piece : {1, 2, 17}) CHECK(FindInPieces(in, piece) == whole);
  std::optional<std::string> scanned;
  // White space around a value may make it too long to be kept.
  if (size <= JsonMemberFinder::kMaxValue && Scan(in, scanned)) CHECK(scanned == whole);
  return 0;
}
