#include "codec/request_target.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "codec/url.h"

namespace fathom {
namespace {

// Without the parameters that some servers cut off: "..;jsessionid=1" is "..".
std::string_view NameOf(std::string_view segment) { return segment.substr(0, segment.find(';')); }

bool HasPlainDotSegments(std::string_view path) {
  return std::ranges::any_of(SplitAny(path, "/\\"), [](std::string_view segment) {
    const std::string_view name = NameOf(segment);
    return name == "." || name == "..";
  });
}

// Bytes that mean something else once they are decoded.
bool ChangesMeaning(char decoded) {
  const auto byte = static_cast<unsigned char>(decoded);
  return byte < 0x20 || byte == 0x7f || decoded == '/' || decoded == '\\' || decoded == '%';
}

bool EscapesAreHarmless(std::string_view path) {
  for (size_t at = path.find('%'); at != path.npos; at = path.find('%', at + 3)) {
    const std::string decoded = PercentDecode(path.substr(at, 3));
    if (decoded.size() != 1 || ChangesMeaning(decoded.front())) return false;
  }
  return true;
}

}  // namespace

RequestTarget RequestTarget::Of(std::string_view target) {
  RequestTarget out;
  constexpr std::string_view kAfterScheme = "://";
  if (const size_t scheme = target.find(kAfterScheme);
      !target.starts_with('/') && scheme != target.npos) {
    target.remove_prefix(scheme + kAfterScheme.size());
    const size_t end = std::min(target.find_first_of("/?"), target.size());
    out.authority = target.substr(0, end);
    target.remove_prefix(end);
  }
  const size_t query = std::min(target.find('?'), target.size());
  out.path = query == 0 ? std::string_view("/") : target.substr(0, query);
  out.query = target.substr(query);
  return out;
}

bool HasDotSegments(std::string_view path) {
  // Nearly all paths.
  const bool dot = path.starts_with('.') || path.find("/.") != path.npos;
  if (!dot && path.find_first_of("%\\") == path.npos) return false;
  const std::string once = PercentDecode(path);
  return HasPlainDotSegments(path) || HasPlainDotSegments(once) ||
         HasPlainDotSegments(PercentDecode(once));
}

bool HasOneReading(std::string_view path) {
  return path.find('\\') == path.npos && path.find("//") == path.npos && !HasDotSegments(path) &&
         EscapesAreHarmless(path);
}

}  // namespace fathom
