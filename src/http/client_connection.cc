#include "http/client_connection.h"

namespace fathom {

Task<Result<void>> ClientConnection::Open(const Endpoint& endpoint, Resolver& resolver,
                                          TimePoint deadline) {
  auto resolving = resolver.Resolve(loop_, endpoint.url.host, endpoint.url.port);
  auto addresses = co_await resolving;
  if (!addresses) co_return std::unexpected(std::move(addresses).error());
  Error last{Blame::kPeer, "no address"};
  for (const Address& address : *addresses) {
    if (cancelled_) co_return Fail(Blame::kPeer, "cancelled");
    const auto fd = Socket::BeginConnect(address);
    if (!fd) {
      last = fd.error();
      continue;
    }
    socket_ = std::make_unique<Socket>(loop_, *fd);
    const IoResult connected = co_await socket_->Connected(deadline);
    if (connected.ok()) break;
    socket_.reset();
    last.what = connected.status == IoStatus::kError ? "connection refused"
                                                     : std::string(Describe(connected.status));
  }
  if (!socket_) co_return std::unexpected(std::move(last).In("connect"));
  if (endpoint.url.tls()) {
    socket_->StartTls(*endpoint.tls, endpoint.Called().host);
    const IoResult shaken = co_await socket_->Handshake(deadline);
    if (!shaken.ok()) {
      co_return Fail(Blame::kPeer, "TLS handshake: {}",
                     shaken.status == IoStatus::kError ? socket_->TlsProblem()
                                                       : std::string(Describe(shaken.status)));
    }
  }
  co_return Result<void>();
}

void ClientConnection::BeginAnswer() {
  finder_ = HeadFinder();
  head_size_ = 0;
  started_ = false;
  in_.Consume(in_.size());
}

Result<bool> ClientConnection::ParseHead(bool to_head_request) {
  for (;;) {
    TRY(const size_t size, finder_.Find(in_.view()));
    if (size == 0) {
      if (in_.room().empty()) return Fail(Blame::kPeer, "the answer's head is too long");
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
  return head_.keep_alive && body_.done() && in_.empty() && !socket_->hung_up() && !cancelled_;
}

void ClientConnection::Rest(std::function<void(ClientConnection&)> on_lost) {
  on_lost_ = std::move(on_lost);
  idle_since_ = loop_.now();
  reused_ = true;
  socket_->Watch(this);
}

void ClientConnection::Wake() { socket_->Watch(nullptr); }

}  // namespace fathom
