// Which worker is a session bound to, and which one has the state of a response, whichever replica
// has served them before?
//
// News      Bindings and pins that are new or have changed are told with the next tick
//           (router/routing/session_affinity.h, router/routing/response_pins.h).
// Newcomer  One of those that were there before it tells it everything: the one that comes first in
//           the newcomer's own order of the others, on which all agree without a word. A newcomer
//           has kSettle to prove itself; then a page of each kind per tick. Whoever has just
//           started itself has nothing to tell but its news.
// Lost      A binding is told again while it is used. Until then a replica that has not heard it
//           chooses by itself, and the higher clock wins.
// Clocks    Times are told as durations. None is compared with another machine's.
//
// Hints (router/routing/session_hints.h) are not shared.
//
// Threads  The replicas' loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "router/replicas/replica_guest.h"
#include "router/routing/response_pins.h"
#include "router/routing/session_affinity.h"

namespace fathom {

class SessionExchange final : public ReplicaGuest {
 public:
  static constexpr Duration kSettle = std::chrono::seconds(1);
  // Who joined or started within this time before another one is no older than that.
  static constexpr Duration kTogether = std::chrono::seconds(2);
  static constexpr size_t kPage = 800;  // in a message: below 32 KiB
  static constexpr size_t kMostNewsPerTick = 8 * kPage;

  // All must outlive it.
  SessionExchange(SessionAffinity& sessions, ResponsePins& pins, ReplicaVoice& voice);

  void Heard(const ReplicaMessage& message, TimePoint now) override;
  void Tick(TimePoint now) override;
  void Joined(const std::string& origin, TimePoint now) override;
  void Left(const std::string& origin, TimePoint now) override;

 private:
  // Everything, for one newcomer.
  struct Tour {
    std::string newcomer;
    SessionAffinity::Walk sessions;
    ResponsePins::Walk pins;
    std::vector<SessionAffinity::Told> session_page;  // being told, as the next
    std::vector<ResponsePins::Told> pin_page;
    bool done() const { return sessions.done() && pins.done(); }
  };

  using Tell = std::function<void(ReplicaMessage::Content content)>;
  void Start(TimePoint now) { started_ = std::min(started_, now); }
  void TellNews(TimePoint now);
  void Guide(TimePoint now);
  bool IsGuideOf(const std::string& newcomer) const;
  static void TellSessions(const std::vector<SessionAffinity::Told>& told, TimePoint now,
                           const Tell& tell);
  static void TellPins(const std::vector<ResponsePins::Told>& told, TimePoint now,
                       const Tell& tell);

  SessionAffinity& sessions_;
  ResponsePins& pins_;
  ReplicaVoice& voice_;
  TimePoint started_ = kNever;
  std::map<std::string, TimePoint, std::less<>> joined_;
  std::map<std::string, TimePoint, std::less<>> newcomers_;  // since when
  std::optional<Tour> tour_;
  std::vector<SessionAffinity::Told> some_sessions_;
  std::vector<ResponsePins::Told> some_pins_;
};

}  // namespace fathom
