#include "io/http/server.h"

#include <unistd.h>

namespace fathom {

HttpServer::HttpServer(std::vector<Place> places, const ServerOptions& options,
                       size_t max_connections, Log& log)
    : options_(options), max_connections_(max_connections), log_(log) {
  for (const Place& place : places) {
    shards_.push_back(std::make_unique<Shard>(Shard{.place = place, .open = {}}));
  }
}

Result<Address> HttpServer::Listen(const Address& address,
                                   std::shared_ptr<const TlsServerContext> tls) {
  tls_ = std::move(tls);
  Loop& first = *shards_.front()->place.loop;
  TRY(listener_, Listener::Bind(first, address, log_));
  first.Post([this] { listener_->Start([this](int fd) { Accept(fd); }); });
  return listener_->address();
}

void HttpServer::StopListening() {
  shards_.front()->place.loop->Post([this] { listener_->Close(); });
}

void HttpServer::ReplaceTls(std::shared_ptr<const TlsServerContext> tls) {
  const std::lock_guard lock(mutex_);
  tls_ = std::move(tls);
}

void HttpServer::Accept(int fd) {
  if (connections_.load(std::memory_order_relaxed) >= max_connections_) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    ::close(fd);
    return;
  }
  connections_.fetch_add(1, std::memory_order_relaxed);
  std::shared_ptr<const TlsServerContext> tls;
  {
    const std::lock_guard lock(mutex_);
    tls = tls_;
  }
  Shard& shard = *shards_[next_shard_++ % shards_.size()];
  if (&shard == shards_.front().get()) {
    Spawn(Serve(shard, fd, std::move(tls)));
    return;
  }
  shard.place.loop->Post([this, &shard, fd, tls = std::move(tls)]() mutable {
    Spawn(Serve(shard, fd, std::move(tls)));
  });
}

Task<void> HttpServer::Serve(Shard& shard, int fd, std::shared_ptr<const TlsServerContext> tls) {
  {
    ServerConnection connection(*shard.place.loop, fd, options_);
    shard.open.insert(&connection);
    bool ready = true;
    if (tls) {
      connection.socket().StartTls(*tls);
      const TimePoint deadline = shard.place.loop->now() + options_.head_timeout;
      const IoResult shaken = co_await connection.socket().Handshake(deadline);
      ready = shaken.ok();
      if (!ready && log_.Enabled(LogLevel::kDebug)) {
        log_.Debug("TLS handshake failed", {{"reason", connection.socket().TlsProblem()}});
      }
    }
    if (ready) {
      auto serving = connection.Serve(*shard.place.handler, draining_);
      co_await serving;
    }
    shard.open.erase(&connection);
  }
  connections_.fetch_sub(1, std::memory_order_relaxed);
}

void HttpServer::Drain() {
  draining_.store(true, std::memory_order_relaxed);
  for (const auto& shard : shards_) {
    shard->place.loop->Post([&open = shard->open] {
      for (ServerConnection* connection : open) {
        if (connection->idle()) connection->Cancel();
      }
    });
  }
}

}  // namespace fathom
