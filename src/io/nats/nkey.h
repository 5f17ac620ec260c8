// Which user does this nkey seed belong to, and what does that user sign?
//
// NATS writes keys as base32 text: a seed "SU...", the user's public key "U...". A server has the
// public key in its configuration; a client sends it, and signs with the seed.
//
// Threads  Any.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace fathom {

// `text` is what a seed file holds: the seed is in a line of its own. Errors never contain it.
Result<std::string> NkeyUserOf(std::string_view text);
// Of the bytes of `signs`: 64 bytes.
Result<std::string> NkeySignature(std::string_view text, std::string_view signs);

}  // namespace fathom
