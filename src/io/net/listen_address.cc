#include "io/net/listen_address.h"

#include <netdb.h>

namespace fathom {

Result<Address> ListenAddress(const std::string& host, uint16_t port) {
  if (const auto numeric = Address::Numeric(host, port)) return *numeric;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0) {
    return Fail(Blame::kCaller, "{}", gai_strerror(error));
  }
  const Address address = Address::Of(found->ai_addr, found->ai_addrlen).WithPort(port);
  freeaddrinfo(found);
  return address;
}

}  // namespace fathom
