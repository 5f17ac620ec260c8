#include "io/zmtp/zmtp_listener.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace fathom {
namespace {

constexpr Duration kPeerHandshakeTime = std::chrono::seconds(10);

Address PeerOf(int fd) {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size);
  return Address::Of(reinterpret_cast<const sockaddr*>(&peer), size);
}

}  // namespace

Result<std::unique_ptr<ZmtpListener>> ZmtpListener::Bind(Loop& loop, ByteBudget& budget,
                                                         std::string_view endpoint,
                                                         ZmtpListenerOptions options, Log& log) {
  TRY(const ZmtpEndpoint parsed, ZmtpEndpoint::Parse(endpoint));
  TRY(const std::vector<Address> addresses, parsed.ToBind());
  std::unique_ptr<ZmtpListener> bound(new ZmtpListener(loop, budget, std::move(options)));
  Error problem{Blame::kCaller, "no address"};
  for (const Address& address : addresses) {
    auto listener = Listener::Bind(loop, address, log);
    if (listener) {
      bound->listener_ = *std::move(listener);
      return bound;
    }
    problem = std::move(listener).error();
  }
  return std::unexpected(std::move(problem));
}

bool ZmtpListener::Allowed(const Address& from) const {
  return options_.allow.empty() ||
         std::ranges::any_of(options_.allow,
                             [&](const AddressRange& range) { return range.Contains(from); });
}

void ZmtpListener::Accept(int fd) {
  const Address from = PeerOf(fd);
  const bool allowed = Allowed(from);
  const bool known = !options_.known || options_.known(from);
  const bool room =
      peers_.size() < options_.most_peers && (known || strangers_ < options_.most_strangers);
  if (allowed && room) {
    Spawn(ServePeer(fd, from, known));
    return;
  }
  ::close(fd);
  on_refusal_(allowed ? ZmtpRefusal::kPeers : ZmtpRefusal::kAddress, from, ZmtpFault::kNone);
}

void ZmtpListener::Refuse(ZmtpFault fault, const Address& from) {
  switch (fault) {
    case ZmtpFault::kNone:
      return;
    case ZmtpFault::kKey:
      return on_refusal_(ZmtpRefusal::kKey, from, fault);
    case ZmtpFault::kFrames:
    case ZmtpFault::kSize:
    case ZmtpFault::kMemory:
    case ZmtpFault::kSlow:
      return on_refusal_(ZmtpRefusal::kLimit, from, fault);
    default:
      return on_refusal_(ZmtpRefusal::kProtocol, from, fault);
  }
}

Task<void> ZmtpListener::ServePeer(int fd, Address from, bool known) {
  ZmtpConnection peer(loop_, fd, ZmtpType::kSub, options_.key, options_.limits, budget_,
                      options_.properties);
  peers_.push_back(&peer);
  if (!known) ++strangers_;
  auto conversing = Converse(peer);
  co_await conversing;
  std::erase(peers_, &peer);
  if (!known) --strangers_;
  if (!stopped_) Refuse(peer.fault(), from);
  if (stopped_ && peers_.empty()) ending_.Wake();
}

Task<void> ZmtpListener::Converse(ZmtpConnection& peer) {
  auto opening = peer.Open(loop_.now() + kPeerHandshakeTime);
  const ZmtpNews opened = co_await opening;
  if (opened != ZmtpNews::kConnected) co_return;
  auto subscribing = peer.Subscribe("");
  const bool subscribed = co_await subscribing;
  if (!subscribed || stopped_) co_return;
  ++connected_;
  auto serving = serve_(peer);
  co_await serving;
  --connected_;
}

Task<void> ZmtpListener::Run(Serve serve, OnRefusal on_refusal) {
  serve_ = std::move(serve);
  on_refusal_ = std::move(on_refusal);
  if (!stopped_) listener_->Start([this](int fd) { Accept(fd); });
  while (!stopped_ || !peers_.empty()) co_await ending_;
}

void ZmtpListener::Stop() {
  if (stopped_) return;
  stopped_ = true;
  listener_->Close();
  for (ZmtpConnection* const peer : peers_) peer->Cancel();
  ending_.Wake();
}

}  // namespace fathom
