// Which of a server's addresses answers first?
//
//   auto connecting = ConnectFirst(loop, addresses, deadline, &cancellation);
//   NetResult<std::unique_ptr<Socket>> socket = co_await connecting;
//
// Happy eyeballs (RFC 8305): the addresses are tried in turn, families alternating. The next one
// begins when one has failed, and at the latest after a short delay while the others go on. The
// first connection that is established wins, the others are closed. So an address that does not
// answer costs a fraction of a second, never the time of the next.
//
// Delay   250 ms, less if otherwise not all of the addresses would get their turn before the
// deadline. Bounds  At most kMostAtOnce attempts at once.
#pragma once

#include <memory>
#include <vector>

#include "io/net/address.h"
#include "io/net/cancellation.h"
#include "io/net/net_error.h"
#include "io/net/socket.h"
#include "io/net/task.h"

namespace fathom {

class ConnectRace {
 public:
  static constexpr Duration kMostDelay = std::chrono::milliseconds(250);
  static constexpr Duration kLeastDelay = std::chrono::milliseconds(10);
  static constexpr size_t kMostAtOnce = 16;

  ConnectRace(Loop& loop, const std::vector<Address>& addresses, TimePoint deadline,
              Cancellation* cancellation);

  Task<NetResult<std::unique_ptr<Socket>>> Run();

 private:
  bool Decided() const;
  bool NextIsDue() const;
  void StartNext();
  Duration Delay() const;
  Task<void> Attempt(Address address);
  void Failed(NetError error);
  void Notify();
  Task<void> WaitUntil(TimePoint until);
  NetResult<std::unique_ptr<Socket>> Outcome();

  Loop& loop_;
  const std::vector<Address> addresses_;
  const TimePoint deadline_;
  Cancellation* const cancellation_;
  size_t begun_ = 0;
  std::vector<Socket*> trying_;
  bool one_failed_ = true;  // since the last attempt began; the first is due at once
  TimePoint next_at_{};
  std::unique_ptr<Socket> winner_;
  NetError error_;
  WakeableWait* waiting_ = nullptr;
  bool changed_ = false;  // while nothing waited
};

Task<NetResult<std::unique_ptr<Socket>>> ConnectFirst(Loop& loop, std::vector<Address> addresses,
                                                      TimePoint deadline,
                                                      Cancellation* cancellation = nullptr);

}  // namespace fathom
