// Publishes to NATS and hears what others publish, and connects again whenever it must.
//
//   NatsClient client(loop, options, {"subject.a", "subject.b"});
//   client.Start([](std::string_view bytes) { ... }, [](bool up, const std::string& problem)
//   {...}); client.Publish("subject.c", bytes);
//
// Core publish/subscribe: best effort. What is published while no server is connected is dropped.
//
// Threads   All calls and callbacks on the loop; no call waits. A thread of its own connects,
//           writes and waits for a server that is slow, stopped or absent; libnats has further
//           ones.
// Pausing   Between attempts to connect, for a random time that doubles up to longest_pause.
// Memory    Outbox (kMostBytes) and inbox (NatsInbox) are bounded, and so are libnats' buffers.
// Ending    Stop() returns at once. The destructor waits for the thread, at most kPatience: if it
//           is still inside a lookup of a name then, it ends by itself and touches nothing of ours.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "io/nats/nats_inbox.h"
#include "io/nats/nats_options.h"
#include "io/net/loop.h"

namespace fathom {

struct NatsStatus {
  bool up = false;
  std::string problem;   // why it is not, or what is wrong although it is; without credentials
  uint64_t dropped = 0;  // messages that did not leave
  uint64_t missed = 0;   // messages that arrived faster than the loop handled them
  uint64_t sent_bytes = 0;
  uint64_t received_bytes = 0;
};

class NatsClient {
 public:
  static constexpr size_t kMostBytes = 8 << 20;
  static constexpr Duration kPatience = std::chrono::seconds(3);

  // Hears `subjects`. The loop must outlive it.
  NatsClient(Loop& loop, NatsOptions options, std::vector<std::string> subjects);
  ~NatsClient();
  NatsClient(const NatsClient&) = delete;
  NatsClient& operator=(const NatsClient&) = delete;

  // Once.
  void Start(NatsInbox::OnMessage on_message, NatsInbox::OnState on_state);
  void Stop();

  // When too many wait, the oldest are dropped. False: not connected, or too long.
  bool Publish(std::string subject, std::string_view bytes);
  // Displaces nothing. False: not connected, or too many wait.
  bool PublishBulk(std::string subject, std::string_view bytes);

  NatsStatus status() const;

 private:
  class Worker;

  const std::shared_ptr<NatsInbox> inbox_;
  const std::shared_ptr<Worker> worker_;
  std::thread thread_;
};

}  // namespace fathom
