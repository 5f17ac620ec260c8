// One connection to a NATS server, until it breaks.
//
//   auto opening = connection.Open(resolver, url, subjects);
//   const Result<void> opened = co_await opening;
//
// Two coroutines use it then: one calls Next(), which reads, and one calls Upkeep() and Publish(),
// which write.
//
// Bounds    Opening takes connect_time, a write write_time. A server from which nothing comes while
//           two pings go out is broken.
// Memory    A buffer, and what NatsReader keeps. Nothing is read while a message is handled: a
//           server that has too much for us closes the connection.
// Fairness  Yields to the loop after each share, reading and writing.
// Ending    Close() is final, and may be called at any time. The connection must live until all of
//           its tasks have ended, which is soon after.
// Threads   The loop's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/nats/nats_hello.h"
#include "io/nats/nats_options.h"
#include "io/nats/nats_reader.h"
#include "io/net/cancellation.h"
#include "io/net/outbox.h"
#include "io/net/resolver.h"
#include "io/net/socket.h"
#include "io/net/task.h"
#include "io/net/yield.h"

namespace fathom {

enum class NatsNews : uint8_t {
  kMessage,  // message()
  kProblem,  // problem(); it stays connected
  kDue,      // Upkeep() has something to do
  kEnded,    // problem()
};

class NatsConnection {
 public:
  // References must outlive it.
  NatsConnection(Loop& loop, const NatsOptions& options);

  Task<Result<void>> Open(Resolver& resolver, std::string url,
                          const std::vector<std::string>& subjects);
  Task<NatsNews> Next();
  // Valid until the next call of Next().
  std::string_view message() const { return reader_.text(); }

  // Answers the server's pings, and sends ours when they are due. False: it has ended.
  Task<bool> Upkeep();
  TimePoint due() const { return next_ping_; }
  // False: it has ended.
  Task<bool> Publish(const OutboxItem& item);

  void Close();
  bool ended() const { return ended_; }
  // What the server does not permit, or why the connection ended; empty: nothing is wrong.
  const std::string& problem() const { return problem_; }
  size_t max_payload() const { return max_payload_; }

 private:
  static constexpr size_t kBuffer = 32 << 10;

  Task<Result<void>> Dial(Resolver& resolver, const NatsPlace& place, TimePoint deadline);
  Task<Result<NatsInfo>> ReadInfo(TimePoint deadline);
  Task<Result<void>> Secure(std::string host, TimePoint deadline);
  Task<Result<void>> AwaitPong(TimePoint deadline);
  Task<NatsReader::Step> Read(TimePoint deadline);
  Task<bool> Write(std::span<iovec> parts);
  // Of what the server has reported. False: it ends the connection.
  bool Stays();
  void End(std::string why);
  std::string WhyGone() const;

  Loop& loop_;
  const NatsOptions& options_;
  Cancellation cancellation_;
  std::unique_ptr<Socket> socket_;
  std::shared_ptr<const TlsClientContext> tls_;
  NatsReader reader_;
  const std::unique_ptr<char[]> buffer_;
  std::string_view unread_;  // of the buffer
  LoopShare read_share_;
  LoopShare write_share_;
  size_t taken_ = 0;    // bytes that `read_share_` does not count yet
  size_t written_ = 0;  // bytes that `write_share_` does not count yet
  size_t max_payload_ = 0;
  TimePoint next_ping_ = kNever;
  // After a write has failed, only what the server had said before is read.
  TimePoint last_words_until_ = kNever;
  int unanswered_ = 0;  // pings
  bool owes_pong_ = false;
  bool ended_ = false;
  std::string problem_;
};

}  // namespace fathom
