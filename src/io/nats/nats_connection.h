// One connection to a NATS server, until it breaks.
//
// libnats connects again by itself, keeps what it could not send, and gives up for ever after two
// refusals of a password. None of that is used: a connection that broke is destroyed, and
// NatsClient makes another one.
//
// Blocking  All calls: Connect() for at most connect_time for each server, the others for at most
//           write_time, a stopped server included.
// Memory    libnats 3.4 leaks a message that it has received half of when the connection closes.
// Threads   One. `on_message` is called on threads of libnats.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/nats/nats_options.h"

// libnats' own.
struct __natsConnection;
struct __natsSubscription;

namespace fathom {

class NatsConnection {
 public:
  // Called on threads of libnats, for a short while also after the connection was destroyed.
  using OnMessage = std::function<void(std::string_view bytes)>;

  static Result<std::unique_ptr<NatsConnection>> Connect(const NatsOptions& options);
  ~NatsConnection();
  NatsConnection(const NatsConnection&) = delete;
  NatsConnection& operator=(const NatsConnection&) = delete;

  Result<void> Subscribe(const std::string& subject, OnMessage on_message);
  Result<void> Publish(const std::string& subject, std::string_view bytes);

  // It broke, and does not come back.
  bool closed() const;
  // The last error that the server or libnats has reported, or empty. A server reports here which
  // subject it does not permit.
  std::string problem() const;
  size_t max_payload() const;

 private:
  explicit NatsConnection(__natsConnection* connection) : connection_(connection) {}

  __natsConnection* const connection_;
  std::vector<__natsSubscription*> subscriptions_;
};

}  // namespace fathom
