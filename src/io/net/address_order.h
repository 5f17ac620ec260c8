// Which address of a host is tried first?
#pragma once

#include <vector>

#include "io/net/address.h"

namespace fathom {

// All addresses of the preferred family, then those of the other. IPv6 is preferred if this machine
// has a route to it and it is not a unique local address (fc00::/7), as in RFC 6724.
std::vector<Address> InOrderOfPreference(const std::vector<Address>& v4,
                                         const std::vector<Address>& v6);

// The families in turn, beginning with that of the first address: if one family leads nowhere, the
// second address tried is of the other (RFC 8305).
std::vector<Address> FamiliesInTurn(const std::vector<Address>& addresses);

}  // namespace fathom
