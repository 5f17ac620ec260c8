#include "io/etcd/etcd_address.h"

#include <fmt/format.h>

#include <algorithm>

namespace fathom {
namespace {

constexpr std::string_view kPlainScheme = "etcd://";
constexpr std::string_view kTlsScheme = "etcds://";
constexpr uint16_t kUsualPort = 2379;

bool HasPort(std::string_view host) {
  const size_t colon = host.rfind(':');
  const size_t bracket = host.rfind(']');
  return colon != host.npos && (bracket == host.npos || colon > bracket);
}

Result<Url> EtcdHost(std::string_view host, bool tls) {
  const std::string_view scheme = tls ? "https" : "http";
  if (host.empty()) {
    return Fail(Blame::kCaller, "a host is empty; write etcd://HOST:2379,HOST:2379/PREFIX");
  }
  if (host.contains('@')) {
    return Fail(Blame::kCaller,
                "an etcd address must not contain a user or a password; set --etcd-user and "
                "--etcd-password-file");
  }
  const std::string text = HasPort(host) ? fmt::format("{}://{}", scheme, host)
                                         : fmt::format("{}://{}:{}", scheme, host, kUsualPort);
  auto url = Url::Parse(text);
  if (!url) {
    return Fail(Blame::kCaller, "'{}' is not HOST or HOST:PORT", host.substr(0, 100));
  }
  return url;
}

}  // namespace

bool EtcdAddress::Is(std::string_view text) {
  return text.starts_with(kPlainScheme) || text.starts_with(kTlsScheme);
}

Result<std::string> EtcdAddress::KeysBelow(std::string_view prefix) {
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  if (prefix.empty()) {
    return Fail(Blame::kCaller,
                "a prefix is needed, e.g. etcd://HOST:2379/fleet for the keys that begin with "
                "\"fleet/\"");
  }
  if (prefix.size() >= kMaxPrefix) {
    return Fail(Blame::kCaller, "the prefix is longer than {} bytes", kMaxPrefix - 1);
  }
  return std::string(prefix) + "/";
}

Result<EtcdAddress> EtcdAddress::Parse(std::string_view text) {
  if (!Is(text)) {
    return Fail(Blame::kCaller, "'{}' is not an etcd address; write etcd://HOST:2379/PREFIX",
                text.substr(0, 100));
  }
  const bool tls = text.starts_with(kTlsScheme);
  std::string_view rest = text.substr(tls ? kTlsScheme.size() : kPlainScheme.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view list = rest.substr(0, slash);
  rest.remove_prefix(std::min(slash + 1, rest.size()));

  EtcdAddress address;
  for (bool more = true; more;) {
    const size_t comma = std::min(list.find(','), list.size());
    if (address.hosts.size() == kMaxHosts) {
      return Fail(Blame::kCaller, "more than {} hosts", kMaxHosts);
    }
    TRY(Url host, EtcdHost(list.substr(0, comma), tls));
    if (std::ranges::count(address.hosts, host) == 0) address.hosts.push_back(std::move(host));
    more = comma < list.size();
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  const bool only_slashes = rest.find_first_not_of('/') == rest.npos;
  if (!only_slashes) {
    TRY(address.prefix, KeysBelow(PercentDecode(rest)));
  }
  return address;
}

std::string EtcdAddress::ToString() const {
  std::string out(tls() ? kTlsScheme : kPlainScheme);
  for (const Url& host : hosts) {
    if (&host != &hosts.front()) out += ',';
    const std::string text = host.ToString();
    out += std::string_view(text).substr(text.find("//") + 2);
  }
  if (!prefix.empty()) out.append("/").append(prefix, 0, prefix.size() - 1);
  return out;
}

}  // namespace fathom
