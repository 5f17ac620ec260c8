// Which token ids does this JSON array list?
//
// A prompt given as ids is the one thing on the request path that is read number by number, so this
// is a scan of its own: well under a nanosecond per byte, and no memory but the ids.
//
// Errors  kCaller. Whatever is not an array of integers from 0 to 2^32-1 is refused: floats,
//         exponents, signs, leading zeros, nesting, anything after the array. `out` is then as it
//         was.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokens/token.h"

namespace fathom {

// More than any model's context, and 64 MiB as ids.
constexpr size_t kMaxTokenIds = size_t{1} << 24;

// Appends at most `limit` ids; a longer list is refused.
Result<void> AppendTokenIds(std::string_view array, std::vector<TokenId>& out,
                            size_t limit = kMaxTokenIds);

}  // namespace fathom
