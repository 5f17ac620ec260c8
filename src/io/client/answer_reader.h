// What does the server answer on this connection? Reads one answer as it arrives.
//
//   AnswerReader answer(connection, deadline);
//   while (!answer.over()) {
//     auto reading = answer.Read();
//     const auto read = co_await reading;
//     ...
//     for (const std::string_view piece : answer.pieces()) ...
//   }
//
// Memory   Head and pieces are views into the connection's buffer, valid until the next Read().
// Threads  The connection's loop.
// Errors   All blame the peer: truncated, timed out, not HTTP. For an answer without length or
//          chunking, the close of the connection is its regular end.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "codec/json.h"
#include "io/http/client_connection.h"

namespace fathom {

class AnswerReader {
 public:
  AnswerReader(ClientConnection& connection, TimePoint deadline)
      : connection_(connection), deadline_(deadline) {}

  // The first call returns when the head is complete, each later one with the next bytes. pieces()
  // may be empty after a call.
  Task<Result<void>> Read();

  // For the reads from now on.
  void set_deadline(TimePoint deadline) { deadline_ = deadline; }

  // The whole answer has been read.
  bool over() const { return over_; }
  const ResponseHead& head() const { return connection_.head(); }
  // The body bytes of the last Read(), without the framing.
  const std::vector<std::string_view>& pieces() const { return pieces_; }

 private:
  Result<void> TakeBody();
  // Decides whether the end of the connection is the answer's regular end.
  Result<void> TakeEnd(IoStatus status);

  ClientConnection& connection_;
  TimePoint deadline_;
  std::vector<std::string_view> pieces_;
  bool have_head_ = false;
  bool over_ = false;
};

// Resets the previous answer and sends a complete request, head and body.
Task<Result<void>> SendRequest(ClientConnection& connection, std::string_view request,
                               TimePoint deadline);

// The token counts that the engine reported for an answer.
struct AnswerUsage {
  uint64_t prompt_tokens = 0;
  uint64_t cached_tokens = 0;  // of the prompt tokens, cache hits
  uint64_t completion_tokens = 0;
};

// From the `usage` of an answer or of one of its events; zeros where it is missing.
AnswerUsage UsageOf(const Json& answer);

}  // namespace fathom
