// What comes back on this connection? Reads one answer as it arrives.
//
//   AnswerReader answer(connection, deadline);
//   while (!answer.over()) {
//     auto reading = answer.Read();
//     const auto read = co_await reading;
//     ...
//     for (const std::string_view piece : answer.pieces()) ...
//   }
//
// Memory   Head and pieces are views into the connection's buffer, good until the next Read().
// Threads  The connection's loop.
// Errors   The peer's: broken off, timed out, not HTTP. An answer that lasts until its connection
//          closes ends well with it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "codec/json.h"
#include "http/client_connection.h"

namespace fathom {

class AnswerReader {
 public:
  AnswerReader(ClientConnection& connection, TimePoint deadline)
      : connection_(connection), deadline_(deadline) {}

  // The first one ends when the head is there, each later one with the next bytes. There may be no
  // pieces among them.
  Task<Result<void>> Read();

  // The whole answer has been read.
  bool over() const { return over_; }
  const ResponseHead& head() const { return connection_.head(); }
  // Of the body, what came with the last Read(), without the framing.
  const std::vector<std::string_view>& pieces() const { return pieces_; }

 private:
  Result<void> TakeBody();
  // What the end of the connection means for the answer.
  Result<void> TakeEnd(IoStatus status);

  ClientConnection& connection_;
  const TimePoint deadline_;
  std::vector<std::string_view> pieces_;
  bool have_head_ = false;
  bool over_ = false;
};

// Forgets the answer before and sends a whole request, head and body.
Task<Result<void>> SendRequest(ClientConnection& connection, std::string_view request,
                               TimePoint deadline);

// What an answer cost, as the engine counted it.
struct AnswerUsage {
  uint64_t prompt_tokens = 0;
  uint64_t cached_tokens = 0;  // of those, found in a cache
  uint64_t completion_tokens = 0;
};

// From the `usage` of an answer or of one of its events; zeros where it says nothing.
AnswerUsage UsageOf(const Json& answer);

}  // namespace fathom
