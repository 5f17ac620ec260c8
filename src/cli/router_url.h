// At which URL does a router answer that was started with this host and port?
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fathom {

// A router that listens on every interface is asked on loopback.
std::string RouterUrl(std::string_view host, uint16_t port);

}  // namespace fathom
