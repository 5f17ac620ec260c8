// Is this 200 a real answer?
//
// A draining vLLM answers new requests with 200, finish_reason "abort" and no tokens. If that is
// detected before the client has received a byte, the request can be retried elsewhere, as after a
// refused connection. So the beginning of an answer is checked before it is relayed.
#pragma once

#include <string_view>

namespace fathom {

enum class Screening { kPass, kWait, kEmptyAbort };

// A complete, short JSON answer.
Screening ScreenJson(std::string_view body);

// The first complete events of a stream. kWait: so far there was only the role announcement that
// precedes the first token, so the next event decides.
Screening ScreenEvents(std::string_view events);

// The same of /v1/messages and /v1/responses, which announce an answer (message_start,
// response.created) before they have any of it, and a queued response for its client to ask for.
Screening ScreenAgentEvents(std::string_view events);

}  // namespace fathom
