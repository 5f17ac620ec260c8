// Is this 200 really an answer?
//
// A draining vLLM answers new requests with 200, finish_reason "abort" and no tokens. Seen before
// the client has got a byte, such an answer is as good as a refused connection: the request can go
// elsewhere. So the beginning of an answer is looked at before it is let through.
#pragma once

#include <string_view>

namespace fathom {

enum class Screening { kPass, kWait, kEmptyAbort };

// A whole, short JSON answer.
Screening ScreenJson(std::string_view body);

// The first whole events of a stream. kWait: so far there was only the role announcement that
// precedes the first token, so the next event decides.
Screening ScreenEvents(std::string_view events);

}  // namespace fathom
