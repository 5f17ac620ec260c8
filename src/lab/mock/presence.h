// Is the client still there? Waits for a moment to come, for tokens of a ticket that it watches, or
// for the client to leave.
//
// While one lives it is its socket's hang-up watcher. One coroutine uses it.
#pragma once

#include <coroutine>
#include <utility>

#include "base/clock.h"
#include "io/net/loop.h"
#include "io/net/socket.h"
#include "lab/mock/engine_driver.h"

namespace fathom {

class Presence final : public TicketWatcher, private HangupWatcher {
 public:
  explicit Presence(Socket& socket) : socket_(socket), alarm_(*this) { socket_.Watch(this); }
  ~Presence() { socket_.Watch(nullptr); }
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  bool gone() const { return ended_ || socket_.hung_up(); }

  struct Wait {
    Presence& presence;
    TimePoint until;

    bool await_ready() const { return presence.gone(); }
    void await_suspend(std::coroutine_handle<> waiting) const {
      presence.waiting_ = waiting;
      presence.socket_.loop().timers().Arm(presence.alarm_, until);
    }
    bool await_resume() const { return !presence.gone(); }  // true: the client is still there
  };
  // kNever: until the client leaves.
  Wait Until(TimePoint until) { return {*this, until}; }

  // Ends a wait; nothing if nobody waits.
  void OnTokens() override { Resume(); }

  // As if the client had left, also for a read or write that waits.
  void End() {
    ended_ = true;
    socket_.Cancel();
    Resume();
  }

 private:
  struct Alarm : Timer {
    explicit Alarm(Presence& p) : Timer(&OnFire), presence(p) {}
    static void OnFire(Timer& timer) { static_cast<Alarm&>(timer).presence.Resume(); }
    Presence& presence;
  };

  void OnHangup() override { Resume(); }

  // What is resumed may destroy this object.
  void Resume() {
    alarm_.Disarm();
    if (waiting_) std::exchange(waiting_, nullptr).resume();
  }

  Socket& socket_;
  Alarm alarm_;
  std::coroutine_handle<> waiting_;
  bool ended_ = false;
};

}  // namespace fathom
