// Does a request have more JSON values than are read?
//
// A value takes two bytes of a request and a hundred of memory, once it is read. A prompt has few
// of them for its size, so that a request of very many is not read at all.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "text/chat/chat_request.h"

namespace fathom {

// Some 50 MiB, once they are read. The prompts of agents that fill a window of a million tokens
// have fewer.
constexpr size_t kMostRequestValues = size_t{1} << 19;

// By an upper bound: the arguments of calls are JSON within a text, and are read, too, so that what
// looks like a value counts in every text.
//
// Errors  kCaller.
Result<void> CheckValues(const ChatFields& chat);

}  // namespace fathom
