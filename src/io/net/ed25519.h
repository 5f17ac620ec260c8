// Which public key belongs to this private one, and what does its owner sign (Ed25519)?
//
// Threads  Any.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fathom {

// Both have 32 bytes. nullopt: `seed` has another length.
std::optional<std::string> Ed25519PublicKey(std::string_view seed);
// 64 bytes. nullopt: `seed` has not 32.
std::optional<std::string> Ed25519Sign(std::string_view seed, std::string_view message);

}  // namespace fathom
