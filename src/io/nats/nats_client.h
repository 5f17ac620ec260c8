// Publishes to NATS and hears what others publish, and connects again whenever it must.
//
//   NatsClient client(loop, resolver, options, {"subject.a", "subject.b"});
//   client.Start([](std::string_view bytes) { ... },
//                [](bool up, const std::string& problem) { ... });
//   client.Publish("subject.c", bytes);
//
// Core publish/subscribe: best effort. What is published while no server is connected is dropped.
//
// Pausing  Between attempts to connect, for a random time that doubles up to longest_pause; the
//          servers are tried in turn.
// Memory   An Outbox of kMostBytes, and what NatsConnection has. What comes faster than it is
//          handled waits at the server, which closes the connection when that is too much.
// Threads  The loop's: all calls and callbacks. No call waits.
// Ending   After Stop() no callback is called. The loop has to run a little longer: what waits on
// it
//          ends then, and may do so after the destructor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/nats/nats_options.h"
#include "io/net/loop.h"
#include "io/net/resolver.h"

namespace fathom {

struct NatsStatus {
  bool up = false;
  std::string problem;   // why it is not, or what is wrong although it is; without credentials
  uint64_t dropped = 0;  // messages that did not leave
  uint64_t sent_bytes = 0;
  uint64_t received_bytes = 0;
};

class NatsClient {
 public:
  static constexpr size_t kMostBytes = 8 << 20;

  using OnMessage = std::function<void(std::string_view bytes)>;
  // Connected or not, and what is wrong.
  using OnState = std::function<void(bool up, const std::string& problem)>;

  // Hears `subjects`. References must outlive it and what ends after it.
  NatsClient(Loop& loop, Resolver& resolver, NatsOptions options,
             std::vector<std::string> subjects);
  ~NatsClient();
  NatsClient(const NatsClient&) = delete;
  NatsClient& operator=(const NatsClient&) = delete;

  // Once.
  void Start(OnMessage on_message, OnState on_state);
  void Stop();

  // When too many wait, the oldest are dropped. False: not connected, or too long.
  bool Publish(std::string subject, std::string_view bytes);
  // Displaces nothing. False: not connected, too long, or too many wait.
  bool PublishBulk(std::string subject, std::string_view bytes);

  NatsStatus status() const;

 private:
  class Core;

  const std::shared_ptr<Core> core_;
};

}  // namespace fathom
