// Which public key belongs to this private one (Ed25519)?
//
// Threads  Any.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fathom {

// Both have 32 bytes. nullopt: `seed` has another length.
std::optional<std::string> Ed25519PublicKey(std::string_view seed);

}  // namespace fathom
