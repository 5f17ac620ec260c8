#include "io/http/client_connection.h"

#include <algorithm>

#include "io/net/connect_race.h"

namespace fathom {

Task<NetResult<void>> ClientConnection::Open(const Endpoint& endpoint, Resolver& resolver,
                                             TimePoint deadline) {
  auto resolving =
      resolver.Resolve(loop_, endpoint.url.host, endpoint.url.port, deadline, &cancellation_);
  auto addresses = co_await resolving;
  if (!addresses) co_return std::unexpected(std::move(addresses).error());
  auto connecting = ConnectFirst(loop_, *std::move(addresses), deadline, &cancellation_);
  auto connected = co_await connecting;
  if (!connected) co_return std::unexpected(std::move(connected).error().In("connect"));
  socket_ = *std::move(connected);
  if (!endpoint.url.tls()) co_return NetResult<void>();
  socket_->StartTls(*endpoint.tls, endpoint.Called().host);
  const IoResult shaken = co_await socket_->Handshake(deadline);
  if (shaken.ok()) co_return NetResult<void>();
  const bool refused = shaken.status == IoStatus::kError;
  co_return NetFail(refused ? NetCause::kTls : CauseOf(shaken.status), "TLS handshake: {}",
                    refused ? socket_->TlsProblem() : std::string(Describe(shaken.status)));
}

void ClientConnection::BeginAnswer() {
  finder_ = HeadFinder();
  head_size_ = 0;
  started_ = false;
  in_.Consume(in_.size());
  if (in_.capacity() == 0) in_ = Buffer(kBuffer);
}

Result<bool> ClientConnection::ParseHead(bool to_head_request) {
  for (;;) {
    TRY(const size_t size, finder_.Find(in_.view()));
    if (size > max_head_ || (size == 0 && in_.size() >= max_head_)) {
      return Fail(Blame::kPeer, "the answer's head is longer than {} bytes", max_head_);
    }
    if (size == 0) {
      if (in_.room().empty()) in_.Grow(std::min(2 * in_.capacity(), max_head_ + kBuffer));
      return false;
    }
    TRY_VOID(ParseResponseHead(in_.view().substr(0, size), to_head_request, head_));
    if (head_.status >= 200) {
      head_size_ = size;
      body_ = BodyDecoder(head_.framing, head_.content_length);
      return true;
    }
    in_.Consume(size);
    in_.Compact();
    finder_ = HeadFinder();
  }
}

bool ClientConnection::Reusable() const {
  return head_.keep_alive && body_.done() && in_.empty() && !socket_->hung_up() && !cancelled();
}

void ClientConnection::Rest(std::function<void(ClientConnection&)> on_lost) {
  on_lost_ = std::move(on_lost);
  idle_since_ = loop_.now();
  if (in_.capacity() > kBuffer && in_.empty()) in_ = Buffer(kBuffer);  // one answer's head was long
  reused_ = true;
  socket_->Watch(this);
}

void ClientConnection::Wake() { socket_->Watch(nullptr); }

}  // namespace fathom
