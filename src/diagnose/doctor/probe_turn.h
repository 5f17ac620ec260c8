// What did one turn of the probe bring, and when?
//
// Memory  At most kMaxText of the answer's text and kMaxRefusal of an answer that is none.
// Errors  The peer's: an error event, an event that is not JSON, a status other than 200.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "codec/http_head.h"
#include "codec/json.h"
#include "codec/sse.h"

namespace fathom {

class ProbeTurn {
 public:
  static constexpr size_t kMaxText = 64 << 10;
  static constexpr size_t kMaxRefusal = 4096;

  TimePoint asked;
  TimePoint first_token{};  // of a stream without a token: its first event
  int status = 0;
  uint64_t prompt_tokens = 0;
  std::optional<uint64_t> cached;     // tokens, as usage tells
  std::optional<uint64_t> announced;  // tokens, by the router's header
  std::string text;

  void TakeHead(const ResponseHead& head);
  Result<void> TakePiece(std::string_view piece, TimePoint now);
  // Once the answer is over.
  Result<void> Outcome() const;

 private:
  Result<void> TakeEvent(std::string_view data, TimePoint now);
  void TakeUsage(const Json& chunk);
  void TakeDelta(const Json& delta, TimePoint now);

  SseReader events_;
  std::string refusal_;
  bool begun_ = false;      // an event has come
  bool has_token_ = false;  // and one with a token
  bool done_ = false;       // and [DONE]
};

}  // namespace fathom
