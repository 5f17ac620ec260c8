#include "codec/url.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace fathom {
namespace {

constexpr uint16_t kHttpPort = 80;
constexpr uint16_t kHttpsPort = 443;

bool IsVisible(char c) { return c > ' ' && c < 0x7f; }

bool IsHostByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

std::string LowerCase(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}

// The text for an error message, without any part that could be a password.
std::string Shown(std::string_view text) {
  const size_t at = text.rfind('@');
  std::string out;
  AppendJsonString(out,
                   at == text.npos ? std::string(text) : fmt::format("...{}", text.substr(at)));
  return out;
}

// Reads one URL, and keeps the whole text for its error messages.
class UrlReader {
 public:
  explicit UrlReader(std::string_view text) : text_(text), rest_(text) {}

  Result<Url> Read() {
    TRY_VOID(Scheme());
    TRY_VOID(CheckBytes());
    const size_t slash = std::min(rest_.find('/'), rest_.size());
    path_ = rest_.substr(slash);
    rest_ = rest_.substr(0, slash);
    TRY_VOID(Host());
    TRY_VOID(Port());
    while (path_.ends_with('/')) path_.remove_suffix(1);
    url_.path = path_;
    return url_;
  }

 private:
  std::unexpected<Error> Wrong(std::string_view problem) const {
    return Fail(Blame::kCaller, "{}: {}; a URL looks like http://host:port/base", Shown(text_),
                problem);
  }

  Result<void> Scheme() {
    const size_t end = rest_.find("://");
    if (end == rest_.npos) return Wrong("no http:// or https:// in front");
    url_.scheme = LowerCase(rest_.substr(0, end));
    if (url_.scheme != "http" && url_.scheme != "https") {
      return Wrong("only http:// and https:// are supported");
    }
    rest_.remove_prefix(end + 3);
    return {};
  }

  Result<void> CheckBytes() const {
    if (!std::ranges::all_of(rest_, IsVisible)) return Wrong("spaces or other invalid bytes");
    if (rest_.find('?') != rest_.npos) return Wrong("a query is not allowed");
    if (rest_.find('#') != rest_.npos) return Wrong("a fragment is not allowed");
    if (rest_.substr(0, rest_.find('/')).find('@') != rest_.npos) {
      return Wrong("a user name or password is not allowed");
    }
    return {};
  }

  // Leaves the text after the host in rest_.
  Result<void> Host() {
    if (rest_.starts_with('[')) return Ipv6();
    const size_t end = std::min(rest_.find(':'), rest_.size());
    url_.host = LowerCase(rest_.substr(0, end));
    if (url_.host.empty()) return Wrong("the host is missing");
    if (!std::ranges::all_of(url_.host, IsHostByte)) return Wrong("invalid host name");
    rest_.remove_prefix(end);
    return {};
  }

  Result<void> Ipv6() {
    const size_t end = rest_.find(']');
    if (end == rest_.npos) return Wrong("'[' without ']'");
    in6_addr address{};
    const std::string inside(rest_.substr(1, end - 1));
    if (inet_pton(AF_INET6, inside.c_str(), &address) != 1) return Wrong("invalid IPv6 address");
    std::array<char, INET6_ADDRSTRLEN> spelled{};
    inet_ntop(AF_INET6, &address, spelled.data(), spelled.size());
    url_.host = spelled.data();
    rest_.remove_prefix(end + 1);
    return {};
  }

  Result<void> Port() {
    url_.port = url_.tls() ? kHttpsPort : kHttpPort;
    if (rest_.empty()) return {};
    if (!rest_.starts_with(':')) return Wrong("junk after the host");
    const std::optional<uint64_t> port = ParseDecimal(rest_.substr(1));
    if (!port || *port == 0 || *port > 65535) return Wrong("the port is not one of 1 to 65535");
    url_.port = static_cast<uint16_t>(*port);
    return {};
  }

  const std::string_view text_;
  std::string_view rest_;
  std::string_view path_;
  Url url_;
};

// Only IPv6 addresses contain colons.
std::string Bracketed(const std::string& host) {
  return host.find(':') == host.npos ? host : fmt::format("[{}]", host);
}

}  // namespace

Result<Url> Url::Parse(std::string_view text) { return UrlReader(text).Read(); }

std::string Url::HostHeader() const {
  if (port == (tls() ? kHttpsPort : kHttpPort)) return Bracketed(host);
  return fmt::format("{}:{}", Bracketed(host), port);
}

std::string Url::ToString() const {
  return fmt::format("{}://{}:{}{}", scheme, Bracketed(host), port, path);
}

std::string PercentDecode(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escaped =
        text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    out += escaped ? static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2])) : text[i];
    if (escaped) i += 2;
  }
  return out;
}

}  // namespace fathom
