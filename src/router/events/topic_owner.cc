#include "router/events/topic_owner.h"

#include <fmt/format.h>

namespace fathom {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Whether the character before a host belongs to a longer host.
bool ContinuesHost(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || IsDigit(c) || c == '.' || c == '-' || c == '_' || c == ':' || c == '[';
}

bool ContainsWhole(std::string_view topic, std::string_view authority) {
  for (size_t at = topic.find(authority); at != topic.npos; at = topic.find(authority, at + 1)) {
    const size_t end = at + authority.size();
    const bool begins = at == 0 || !ContinuesHost(topic[at - 1]);
    if (begins && (end == topic.size() || !IsDigit(topic[end]))) return true;
  }
  return false;
}

// An IPv6 address may stand in brackets, or without them as Kubernetes writes a pod's address.
bool Names(std::string_view topic, const TopicClaim& claim) {
  if (ContainsWhole(topic, fmt::format("{}:{}", claim.host, claim.port))) return true;
  if (claim.host.find(':') == std::string::npos) return false;
  return ContainsWhole(topic, fmt::format("[{}]:{}", claim.host, claim.port));
}

template <class Matches>
std::optional<size_t> OnlyOne(std::span<const TopicClaim> claims, Matches matches) {
  std::optional<size_t> found;
  for (size_t i = 0; i < claims.size(); ++i) {
    if (!matches(claims[i])) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

}  // namespace

std::optional<size_t> OwnerOfTopic(std::string_view topic, std::span<const TopicClaim> claims) {
  const auto written =
      OnlyOne(claims, [&](const TopicClaim& claim) { return claim.topic == topic; });
  if (written) return written;
  return OnlyOne(claims, [&](const TopicClaim& claim) { return Names(topic, claim); });
}

}  // namespace fathom
