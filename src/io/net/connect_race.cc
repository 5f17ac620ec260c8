#include "io/net/connect_race.h"

#include <algorithm>
#include <utility>

#include "io/net/address_order.h"

namespace fathom {

ConnectRace::ConnectRace(Loop& loop, const std::vector<Address>& addresses, TimePoint deadline,
                         Cancellation* cancellation)
    : loop_(loop),
      addresses_(FamiliesInTurn(addresses)),
      deadline_(deadline),
      cancellation_(cancellation),
      error_(NetFail(NetCause::kTimeout, "timed out").error()) {}

Task<NetResult<std::unique_ptr<Socket>>> ConnectRace::Run() {
  while (!Decided()) {
    if (NextIsDue()) {
      StartNext();
      continue;  // it may have ended already
    }
    const bool more = begun_ < addresses_.size() && trying_.size() < kMostAtOnce;
    auto waiting = WaitUntil(more ? std::min(next_at_, deadline_) : deadline_);
    co_await waiting;
  }
  for (Socket* const loser : trying_) loser->Cancel();
  while (!trying_.empty()) {  // their coroutines use this object
    auto waiting = WaitUntil(kNever);
    co_await waiting;
  }
  co_return Outcome();
}

bool ConnectRace::Decided() const {
  if (winner_ != nullptr || (cancellation_ != nullptr && cancellation_->cancelled())) return true;
  const bool all_failed = begun_ == addresses_.size() && trying_.empty();
  return all_failed || loop_.now() >= deadline_;
}

bool ConnectRace::NextIsDue() const {
  return begun_ < addresses_.size() && trying_.size() < kMostAtOnce &&
         (one_failed_ || loop_.now() >= next_at_);
}

void ConnectRace::StartNext() {
  one_failed_ = false;
  next_at_ = loop_.now() + Delay();
  Spawn(Attempt(addresses_[begun_++]));
}

Duration ConnectRace::Delay() const {
  if (deadline_ == kNever) return kMostDelay;
  const auto turns = static_cast<int64_t>(addresses_.size() - begun_);
  return std::clamp(Duration((deadline_ - loop_.now()) / turns), kLeastDelay, kMostDelay);
}

Task<void> ConnectRace::Attempt(Address address) {
  const auto fd = Socket::BeginConnect(address);
  if (!fd) {
    Failed(fd.error());
    co_return;
  }
  auto socket = std::make_unique<Socket>(loop_, *fd);
  trying_.push_back(socket.get());
  const ConnectResult connected = co_await socket->Connected(deadline_);
  std::erase(trying_, socket.get());
  if (connected.ok() && winner_ == nullptr) winner_ = std::move(socket);
  socket.reset();
  if (connected.status == IoStatus::kError) {
    Failed(NetFail(CauseOfErrno(connected.error), "{}", DescribeErrno(connected.error)).error());
    co_return;
  }
  Notify();  // the last use: the race may end inside this call
}

void ConnectRace::Failed(NetError error) {
  one_failed_ = true;
  error_ = std::move(error);
  Notify();
}

void ConnectRace::Notify() {
  if (waiting_ != nullptr) return waiting_->WakeNow();
  changed_ = true;
}

Task<void> ConnectRace::WaitUntil(TimePoint until) {
  if (std::exchange(changed_, false)) co_return;
  WakeableWait wait(loop_, until);
  const Cancellation::Scope scope(cancellation_, wait);
  waiting_ = &wait;
  co_await wait;
  waiting_ = nullptr;
}

NetResult<std::unique_ptr<Socket>> ConnectRace::Outcome() {
  if (cancellation_ != nullptr && cancellation_->cancelled()) {
    return NetFail(NetCause::kCancelled, "cancelled");
  }
  if (winner_ != nullptr) return std::move(winner_);
  if (addresses_.empty()) return NetFail(NetCause::kNoSuchName, "no address");
  // An address that did not answer may be alive: one that refused does not speak for it.
  if (loop_.now() >= deadline_) return NetFail(NetCause::kTimeout, "timed out");
  return std::unexpected(std::move(error_));
}

Task<NetResult<std::unique_ptr<Socket>>> ConnectFirst(Loop& loop, std::vector<Address> addresses,
                                                      TimePoint deadline,
                                                      Cancellation* cancellation) {
  ConnectRace race(loop, addresses, deadline, cancellation);
  auto running = race.Run();
  auto socket = co_await running;
  co_return socket;
}

}  // namespace fathom
