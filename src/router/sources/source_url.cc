#include "router/sources/source_url.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "codec/url.h"

namespace fathom {
namespace {

constexpr size_t kLongestUrl = 4096;
constexpr size_t kLongestLabel = 63;       // of a namespace, a Service, a label's name or value
constexpr size_t kLongestSubdomain = 253;  // of an InferencePool, a label's prefix
constexpr size_t kLongestPortName = 15;    // of a container's port

// A URL while it is read: every error names it and its right form.
class SourceUrlReader {
 public:
  SourceUrlReader(std::string_view text, std::string_view scheme, std::string_view form)
      : text_(text), scheme_(scheme), form_(form) {}

  Result<void> Check() const {
    if (text_.size() > kLongestUrl) {
      return Refuse("it has {} bytes, and at most {} are allowed", text_.size(), kLongestUrl);
    }
    if (!text_.starts_with(scheme_)) return Refuse("it does not begin with {}", scheme_);
    return {};
  }

  template <class... Args>
  std::unexpected<Error> Refuse(fmt::format_string<Args...> why, Args&&... args) const {
    return Fail(Blame::kCaller, "'{}': {}; the form is {}", text_.substr(0, 300),
                fmt::format(why, std::forward<Args>(args)...), form_);
  }

  // What stands before the first slash, and after it.
  Result<std::pair<std::string_view, std::string_view>> AtSlash() const {
    const std::string_view all = rest();
    const size_t slash = all.find('/');
    if (slash == std::string_view::npos) return Refuse("there is no / after the namespace");
    return std::pair(all.substr(0, slash), all.substr(slash + 1));
  }

  // What stands before the last colon, and after it.
  Result<std::pair<std::string_view, std::string_view>> AtPort(std::string_view text) const {
    const size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) return Refuse("there is no port");
    return std::pair(text.substr(0, colon), text.substr(colon + 1));
  }

  // After the scheme.
  std::string_view rest() const { return text_.substr(scheme_.size()); }

 private:
  const std::string_view text_;
  const std::string_view scheme_;
  const std::string_view form_;
};

bool IsLower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool IsLetterOrDigit(char c) { return IsLower(c) || (c >= 'A' && c <= 'Z'); }

// RFC 1123: lower-case letters, digits and dashes within.
bool IsDnsLabel(std::string_view text) {
  return !text.empty() && text.size() <= kLongestLabel && IsLower(text.front()) &&
         IsLower(text.back()) &&
         std::ranges::all_of(text, [](char c) { return IsLower(c) || c == '-'; });
}

bool IsDnsSubdomain(std::string_view text) {
  if (text.empty() || text.size() > kLongestSubdomain) return false;
  while (true) {
    const size_t dot = text.find('.');
    if (!IsDnsLabel(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

// A label's name, or its value.
bool IsLabelWord(std::string_view text) {
  return !text.empty() && text.size() <= kLongestLabel && IsLetterOrDigit(text.front()) &&
         IsLetterOrDigit(text.back()) && std::ranges::all_of(text, [](char c) {
           return IsLetterOrDigit(c) || c == '-' || c == '_' || c == '.';
         });
}

bool IsLabelKey(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return IsLabelWord(text);
  return IsDnsSubdomain(text.substr(0, slash)) && IsLabelWord(text.substr(slash + 1));
}

bool IsLabelValue(std::string_view text) { return text.empty() || IsLabelWord(text); }

bool IsPortNumber(std::string_view text) {
  const auto number = ParseDecimal(text);
  return number && *number >= 1 && *number <= 65535;
}

bool IsDigits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// RFC 6335, as for the ports of containers.
bool IsPortName(std::string_view text) {
  return IsDnsLabel(text) && text.size() <= kLongestPortName && !text.contains("--") &&
         std::ranges::any_of(text, [](char c) { return c >= 'a' && c <= 'z'; });
}

Result<void> CheckNamespace(const SourceUrlReader& url, std::string_view ns) {
  if (IsDnsLabel(ns)) return {};
  return url.Refuse("'{}' is no name of a namespace", ns.substr(0, 100));
}

// Parts of a selector: at commas that are not within parentheses.
std::vector<std::string_view> Requirements(std::string_view selector) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t from = 0;
  for (size_t i = 0; i < selector.size(); ++i) {
    if (selector[i] == '(') ++depth;
    if (selector[i] == ')') --depth;
    if (selector[i] != ',' || depth > 0) continue;
    parts.push_back(Trim(selector.substr(from, i - from)));
    from = i + 1;
  }
  parts.push_back(Trim(selector.substr(from)));
  return parts;
}

// " in (a, b)" or " notin (a)" after a key.
bool IsSetOf(std::string_view rest) {
  rest = Trim(rest);
  for (const std::string_view word : {"in", "notin"}) {
    if (!rest.starts_with(word)) continue;
    std::string_view set = Trim(rest.substr(word.size()));
    if (!set.starts_with('(') || !set.ends_with(')')) continue;
    set = set.substr(1, set.size() - 2);
    return std::ranges::all_of(Requirements(set), IsLabelValue);
  }
  return false;
}

// key, !key, key=value, key==value, key!=value, key in (…), key notin (…)
bool IsRequirement(std::string_view text) {
  if (text.starts_with('!')) return IsLabelKey(Trim(text.substr(1)));
  const size_t end = text.find_first_of("=! \t(");
  const std::string_view key = text.substr(0, end);
  if (!IsLabelKey(key)) return false;
  if (end == std::string_view::npos) return true;
  const std::string_view rest = Trim(text.substr(end));
  for (const std::string_view sign : {"==", "!=", "="}) {
    if (rest.starts_with(sign)) return IsLabelValue(Trim(rest.substr(sign.size())));
  }
  return IsSetOf(rest);
}

Result<void> CheckSelector(const SourceUrlReader& url, std::string_view selector) {
  for (const std::string_view part : Requirements(selector)) {
    if (IsRequirement(part)) continue;
    return url.Refuse(
        "'{}' is no part of a label selector, which is key=value, key!=value, key in (a,b), "
        "key notin (a,b), key or !key, separated by commas",
        part.substr(0, 100));
  }
  return {};
}

}  // namespace

Result<KubeServiceUrl> KubeServiceUrl::Parse(std::string_view text) {
  const SourceUrlReader url(text, "k8s://", "k8s://NAMESPACE/SERVICE:PORT");
  TRY_VOID(url.Check());
  TRY(const auto head, url.AtSlash());
  const auto [ns, name_and_port] = head;
  TRY_VOID(CheckNamespace(url, ns));
  TRY(const auto tail, url.AtPort(name_and_port));
  const auto [service, port] = tail;
  if (!IsDnsLabel(service)) return url.Refuse("'{}' is no name of a Service", service);
  // The slice has the name of the Service's port, which may be longer than a container's.
  if (IsDigits(port) ? !IsPortNumber(port) : !IsDnsLabel(port)) {
    return url.Refuse("'{}' is neither the name of a port nor 1 to 65535", port);
  }
  return KubeServiceUrl{std::string(ns), std::string(service), std::string(port)};
}

Result<KubePodsUrl> KubePodsUrl::Parse(std::string_view text) {
  const SourceUrlReader url(text, "k8s-pods://", "k8s-pods://NAMESPACE/SELECTOR:PORT");
  TRY_VOID(url.Check());
  TRY(const auto head, url.AtSlash());
  const auto [ns, selector_and_port] = head;
  TRY_VOID(CheckNamespace(url, ns));
  TRY(const auto tail, url.AtPort(selector_and_port));
  const auto [written, port] = tail;
  const std::string_view selector = Trim(written);
  TRY_VOID(CheckSelector(url, selector));
  if (IsDigits(port) ? !IsPortNumber(port) : !IsPortName(port)) {
    return url.Refuse("'{}' is neither the name of a container's port nor 1 to 65535", port);
  }
  return KubePodsUrl{std::string(ns), std::string(selector), std::string(port)};
}

Result<KubePoolUrl> KubePoolUrl::Parse(std::string_view text) {
  const SourceUrlReader url(text, "k8s-pool://", "k8s-pool://NAMESPACE/NAME");
  TRY_VOID(url.Check());
  TRY(const auto head, url.AtSlash());
  const auto [ns, name] = head;
  TRY_VOID(CheckNamespace(url, ns));
  if (name.contains(':')) return url.Refuse("the pool itself names its ports");
  if (!IsDnsSubdomain(name)) return url.Refuse("'{}' is no name of an InferencePool", name);
  return KubePoolUrl{std::string(ns), std::string(name)};
}

Result<FileUrl> FileUrl::Parse(std::string_view text) {
  const SourceUrlReader url(text, "file://", "file:///PATH with three slashes");
  TRY_VOID(url.Check());
  std::string path = PercentDecode(url.rest());
  if (!path.starts_with('/')) return url.Refuse("the path does not begin with /");
  if (path.contains('\0')) return url.Refuse("the path has a zero byte");
  if (path.ends_with('/')) return url.Refuse("this is a folder, not a file");
  return FileUrl{std::move(path)};
}

}  // namespace fathom
