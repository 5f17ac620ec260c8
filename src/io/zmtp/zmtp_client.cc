#include "io/zmtp/zmtp_client.h"

#include <algorithm>
#include <utility>

namespace fathom {
namespace {

constexpr Duration kHandshakeTime = std::chrono::seconds(5);  // per address
// A peer that stayed this long begins with the first pause again.
constexpr Duration kStayed = std::chrono::seconds(1);
constexpr Duration kStayedAfterFault = std::chrono::seconds(30);

}  // namespace

Result<std::unique_ptr<ZmtpClient>> ZmtpClient::Create(Loop& loop, Resolver& resolver,
                                                       ByteBudget& budget,
                                                       std::string_view endpoint,
                                                       ZmtpClientOptions options) {
  TRY(ZmtpEndpoint parsed, ZmtpEndpoint::Parse(endpoint));
  if (!parsed.ipc && parsed.port == 0) {
    return Fail(Blame::kCaller, "'{}' is not a ZeroMQ endpoint; write tcp://HOST:PORT", endpoint);
  }
  return std::unique_ptr<ZmtpClient>(
      new ZmtpClient(loop, resolver, budget, std::move(parsed), std::move(options)));
}

void ZmtpClient::Stop() {
  stopped_ = true;
  if (connection_) connection_->Cancel();
  if (pausing_ != nullptr) pausing_->Wake();
}

Task<ZmtpNews> ZmtpClient::Next(TimePoint deadline) {
  while (!stopped_) {
    if (!connected_) {
      auto dialling = Dial(deadline);
      const ZmtpNews news = co_await dialling;
      if (news != ZmtpNews::kDisconnected) co_return news;
      continue;
    }
    auto receiving = connection_->Receive(deadline);
    const ZmtpNews news = co_await receiving;
    if (stopped_) break;
    if (news == ZmtpNews::kMessage && !Wanted()) continue;
    if (news == ZmtpNews::kDisconnected) Disconnected();
    co_return news;
  }
  co_return ZmtpNews::kCancelled;
}

Task<bool> ZmtpClient::Send(const ZmqMessage& message) {
  if (!connected_) co_return false;
  auto sending = connection_->Send(message);
  const bool sent = co_await sending;
  co_return sent;
}

// A publisher filters by itself; one that does not is not to be relied on.
bool ZmtpClient::Wanted() const {
  return options_.type != ZmtpType::kSub || message()[0].starts_with(options_.topic);
}

void ZmtpClient::Disconnected() {
  fault_ = connection_->fault();
  connection_.reset();
  connected_ = false;
  const Duration stayed = loop_.now() - connected_at_;
  if (stayed >= (fault_ == ZmtpFault::kNone ? kStayed : kStayedAfterFault)) {
    pause_ = options_.first_pause;
  }
  dial_at_ = loop_.now() + pause_;
  pause_ = std::min(2 * pause_, options_.longest_pause);
}

Task<ZmtpNews> ZmtpClient::Pause(TimePoint deadline) {
  WakeableWait wait(loop_, std::min(dial_at_, deadline));
  pausing_ = &wait;
  const WakeCause cause = co_await wait;
  pausing_ = nullptr;
  if (stopped_) co_return ZmtpNews::kCancelled;
  co_return cause == WakeCause::kTimedOut&& loop_.now() < dial_at_ ? ZmtpNews::kTimeout
                                                                   : ZmtpNews::kDisconnected;
}

// kDisconnected: no peer could be reached; the next attempt comes after a pause.
Task<ZmtpNews> ZmtpClient::Dial(TimePoint deadline) {
  if (loop_.now() < dial_at_) {
    auto pausing = Pause(deadline);
    const ZmtpNews paused = co_await pausing;
    if (paused != ZmtpNews::kDisconnected) co_return paused;
  }
  auto resolving = endpoint_.Resolve(loop_, resolver_);
  const auto addresses = co_await resolving;
  if (stopped_) co_return ZmtpNews::kCancelled;
  if (addresses) {
    for (const Address& address : *addresses) {
      auto dialling = DialOne(address, deadline);
      const ZmtpNews news = co_await dialling;
      if (news != ZmtpNews::kDisconnected) co_return news;
    }
  }
  if (loop_.now() >= deadline) co_return ZmtpNews::kTimeout;
  dial_at_ = loop_.now() + pause_;
  pause_ = std::min(2 * pause_, options_.longest_pause);
  co_return ZmtpNews::kDisconnected;
}

Task<ZmtpNews> ZmtpClient::DialOne(Address address, TimePoint deadline) {
  const auto fd = Socket::BeginConnect(address);
  if (!fd) co_return ZmtpNews::kDisconnected;
  connection_ = std::make_unique<ZmtpConnection>(loop_, *fd, options_.type, std::string(),
                                                 options_.limits, budget_);
  auto opening = connection_->Open(std::min(deadline, loop_.now() + kHandshakeTime));
  const ZmtpNews opened = co_await opening;
  bool ready = opened == ZmtpNews::kConnected;
  if (ready && options_.type == ZmtpType::kSub) {
    auto subscribing = connection_->Subscribe(options_.topic);
    ready = co_await subscribing;
  }
  if (stopped_) co_return ZmtpNews::kCancelled;
  if (ready) {
    connected_ = true;
    connected_at_ = loop_.now();
    co_return ZmtpNews::kConnected;
  }
  fault_ = connection_->fault();
  connection_.reset();
  co_return loop_.now() >= deadline ? ZmtpNews::kTimeout : ZmtpNews::kDisconnected;
}

}  // namespace fathom
