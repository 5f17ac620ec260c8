// Which worker served this session last?
//
// Replicas  A binding is known to all replicas of this router. Each has a clock: whoever binds a
//           session to another worker raises it above all that it has seen, and the binding with
//           the higher clock wins; of equal ones that of the smaller worker. So all agree, in
//           whatever order they hear of it. Bindings that come or change are news; one that is
//           merely used is told again after kRetell of the TTL, so that it does not expire
//           elsewhere. What is learned is no news: nothing is told on.
// Threads   Any; sharded mutexes, only for requests that name a session.
// Memory    At most kMaxSessions are remembered, each until it has been idle for the TTL.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "router/routing/idle_map.h"
#include "router/routing/news_queue.h"

namespace fathom {

class SessionAffinity {
 public:
  static constexpr size_t kMaxSessions = 1 << 20;
  static constexpr int kRetell = 8;  // a share of the TTL
  // Clocks beyond this are not believed: nobody gets that far by counting.
  static constexpr uint64_t kMostAhead = uint64_t{1} << 40;  // of a clock before ours

  // `secret` is random, and the same for all replicas: other replicas hear the keys of sessions,
  // and nothing else of them.
  SessionAffinity(Duration ttl, uint64_t secret) : secret_(secret), bindings_(ttl, kMaxSessions) {}

  bool enabled() const { return bindings_.ttl() > Duration::zero(); }
  std::optional<WorkerId> Find(std::string_view session, TimePoint now);
  void Remember(std::string_view session, WorkerId worker, TimePoint now);
  size_t size() const { return bindings_.size(); }

  // For the other replicas.
  struct Told {
    uint64_t session = 0;  // its key
    WorkerId worker;
    uint64_t clock = 0;
    TimePoint last_used{};
  };
  // From now on there is news.
  void Listen() { news_.Listen(); }
  void TakeNews(std::vector<Told>& news, size_t most) { news_.Take(news, most); }
  void Learn(const Told& told, TimePoint now);

 private:
  struct Binding {
    WorkerId worker;
    uint64_t clock = 0;
    TimePoint told{};  // or heard
  };
  using Bindings = IdleMap<Binding>;

 public:
  // A walk through all of them, a few at a time.
  using Walk = Bindings::Walk;
  void Continue(Walk& walk, std::vector<Told>& into, size_t most) const;

 private:
  uint64_t KeyOf(std::string_view session) const;

  const uint64_t secret_;
  Bindings bindings_;
  std::atomic<uint64_t> clock_{0};  // the highest one; relaxed, pairs with nothing
  NewsQueue<Told> news_;
};

}  // namespace fathom
