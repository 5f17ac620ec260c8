#include "io/net/address_order.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace fathom {
namespace {

bool IsUniqueLocal(const Address& address) {
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address.get());
  return (v6->sin6_addr.s6_addr[0] & 0xfe) == 0xfc;
}

// Connecting a datagram socket sends nothing; it fails if there is no route.
bool HasRoute(const Address& address) {
  const int fd = ::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  const Address to = address.WithPort(1);
  const bool routed = ::connect(fd, to.get(), to.size()) == 0;
  ::close(fd);
  return routed;
}

}  // namespace

std::vector<Address> InOrderOfPreference(const std::vector<Address>& v4,
                                         const std::vector<Address>& v6) {
  const bool v6_first =
      v4.empty() || (!v6.empty() && !IsUniqueLocal(v6.front()) && HasRoute(v6.front()));
  std::vector<Address> all = v6_first ? v6 : v4;
  const std::vector<Address>& rest = v6_first ? v4 : v6;
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

std::vector<Address> FamiliesInTurn(const std::vector<Address>& addresses) {
  std::vector<Address> first;
  std::vector<Address> second;
  for (const Address& address : addresses) {
    (address.family() == addresses.front().family() ? first : second).push_back(address);
  }
  std::vector<Address> mixed;
  mixed.reserve(addresses.size());
  for (size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i < first.size()) mixed.push_back(first[i]);
    if (i < second.size()) mixed.push_back(second[i]);
  }
  return mixed;
}

}  // namespace fathom
