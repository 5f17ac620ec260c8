// Which worker, and which of its ranks, has the response with this id?
//
// An engine keeps the responses of /v1/responses in its own memory: a request that continues one
// can be served by that worker alone. Ids are learned from answers, and by asking the workers.
//
// First come  The pin of an id stays until it is forgotten or expires: clients can choose the ids
//             of some engines, and must not be able to move each other's conversations.
// Replicas    A pin that is new, or whose conversation becomes known, is news for the other
// replicas
//             of this router; one that is merely used is told again after kRetell of its time. What
//             is learned is no news. That a pin was forgotten is not told, and a late message may
//             bring it back: that is harmless, because a pin only says whom to ask first, and the
//             worker's answer that it has no such response makes each replica forget it.
// Threads     Any; sharded mutexes, only for requests to /v1/responses.
// Memory      At most kMostResponses, about 32 MiB, each until it has not been used for kTtl. When
//             a shard is full its oldest are dropped. Ids are kept as keyed hashes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "router/routing/idle_map.h"
#include "router/routing/news_queue.h"

namespace fathom {

class ResponsePins {
 public:
  static constexpr size_t kMostResponses = size_t{1} << 18;
  static constexpr Duration kTtl = std::chrono::hours(12);
  static constexpr int kRetell = 8;  // a share of kTtl
  // Ids above this are not remembered. Those of engines have about 40 bytes.
  static constexpr size_t kLongestId = 256;

  struct Pin {
    WorkerId worker;
    uint32_t dp_rank = 0;  // that computed it, and has probably cached it
    uint32_t tokens = 0;   // of the conversation up to the end of the response; 0: not known
    bool operator==(const Pin&) const = default;
  };

  // `secret` is random, so that clients cannot construct ids that collide.
  explicit ResponsePins(uint64_t secret) : secret_(secret) {}

  // Starts the time of the pin anew.
  std::optional<Pin> Find(std::string_view id, TimePoint now);
  void Remember(std::string_view id, WorkerId worker, TimePoint now);
  // Both only if it is pinned to this worker.
  void SetContext(std::string_view id, const Pin& pin);
  void Forget(std::string_view id, WorkerId worker);
  size_t size() const { return pins_.size(); }

  // For the other replicas.
  struct Told {
    uint64_t response = 0;  // its key
    Pin pin;
    TimePoint last_used{};
  };
  // From now on there is news.
  void Listen() { news_.Listen(); }
  void TakeNews(std::vector<Told>& news, size_t most) { news_.Take(news, most); }
  void Learn(const Told& told, TimePoint now);

 private:
  struct Kept {
    Pin pin;
    TimePoint told{};  // or heard
  };
  using Pins = IdleMap<Kept>;

 public:
  // A walk through all of them, a few at a time.
  using Walk = Pins::Walk;
  void Continue(Walk& walk, std::vector<Told>& into, size_t most) const;

 private:
  uint64_t KeyOf(std::string_view id) const;
  // It is used now.
  void Use(uint64_t key, Pins::Slot& slot, TimePoint now);

  const uint64_t secret_;
  Pins pins_{kTtl, kMostResponses};
  NewsQueue<Told> news_;
};

}  // namespace fathom
