// How much work is on this rank, of this router and of its other replicas?
//
// Each request stays on its rank from dispatch to its last byte: first as prefill work, in order of
// arrival, as engines process it; from its first byte on as context that is decoded. When all stays
// have ended every number is exactly zero again, also after failed or cancelled requests.
//
// Progress  The oldest prefill is in progress, so part of the backlog is already done. How much is
//           estimated from the engine's speed; the next first byte corrects it. A request whose
//           answer is not streamed (kSilent) shows no first token: it counts as prefilled when its
//           estimated time is over, or when a later request has its first byte.
// Replicas  The engine has one queue for the requests of all replicas. So a request that enters
//           while others' prefills wait does not begin a prefill, and a first byte that any replica
//           has seen corrects the progress. Whose request is the oldest is not known: the progress
//           reaches at most into the largest of the oldest ones. When others' silent prefills end
//           is for them to say.
// Threads   Any; a short lock for requests. Look() takes it only to end a silent prefill. Its
//           numbers may be of slightly different moments while a request enters or leaves.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/clock.h"
#include "router/fleet/foreign_load.h"
#include "router/fleet/load_block.h"

namespace fathom {

class RankLoad {
 public:
  enum class Kind : uint8_t { kAnnounced, kSilent };

  // One request on the rank. The owner must call Leave() before destroying it.
  class Stay {
   public:
    Stay() = default;
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;

   private:
    friend class RankLoad;
    double work_ = 0;       // units of prefill work
    uint64_t context_ = 0;  // tokens that Leave() subtracts
    uint64_t grown_ = 0;    // generated tokens
    Kind kind_ = Kind::kAnnounced;
    bool here_ = false;
    bool prefilling_ = false;
    Stay* before_ = nullptr;  // in the queue of prefills
    Stay* after_ = nullptr;
  };

  // Of all replicas.
  struct View {
    double backlog = 0;    // work before a new request's, minus the estimated progress
    double queued = 0;     // work of all requests without a first byte, progress ignored
    uint64_t context = 0;  // tokens of all requests
    uint32_t requests = 0;
    uint32_t waiting = 0;  // of these, without a first byte
    friend bool operator==(const View&, const View&) = default;
  };

  void Enter(Stay& stay, Kind kind, double work, uint64_t context, TimePoint now);
  // The first byte has arrived: this request is prefilled, and so are the silent ones before it.
  void FirstByte(Stay& stay, TimePoint now);
  // The request has generated `tokens` more.
  void Grow(Stay& stay, uint64_t tokens);
  // The request's context is now shared with others: Leave() subtracts `context` instead of the
  // amount that Enter() added.
  void SetShare(Stay& stay, uint64_t context);
  void Leave(Stay& stay, TimePoint now);

  // What the other replicas have placed, from now on. The prefill that is in progress never began
  // earlier than it was said to before.
  void SetForeign(const ForeignLoad& foreign);
  // What this router itself has placed.
  struct Placed {
    double queued = 0;
    double oldest = 0;  // work of the oldest prefill
    // When the prefill that is in progress on the rank began, as far as this router's own requests
    // show it; also without one of its own.
    TimePoint busy_since{};
    uint64_t context = 0;
    uint32_t requests = 0;
    uint32_t waiting = 0;
    friend bool operator==(const Placed&, const Placed&) = default;
  };
  Placed placed() const;

  // `unit` is the time per unit of work, in nanoseconds.
  View Look(TimePoint now, double unit);
  // The same, but silent prefills that are overdue are not ended.
  View LookAgain(TimePoint now, double unit) const;
  // Call it some time before Look().
  void Prefetch() const { __builtin_prefetch(&seen_); }
  // As in the view: requests of all replicas without a first byte.
  uint32_t waiting_in_all() const { return seen_.waiting.load(std::memory_order_relaxed); }
  // Whether Look() may find that a prefill has ended.
  bool silent() const { return seen_.silent.load(std::memory_order_relaxed); }
  // A prefill that ends without an event.
  struct Silence {
    TimePoint since{};
    double work = 0;
    TimePoint End(double unit) const { return since + Duration(static_cast<int64_t>(work * unit)); }
  };
  // The one that Look() may find to have ended, if silent().
  Silence silence() const;

  // The rank's load is part of a block's from now on.
  void Stand(LoadBoard& board, const std::string& group);
  // Null: of none.
  std::shared_ptr<LoadBlock> block() const { return standing().block; }
  struct Standing {
    std::shared_ptr<LoadBlock> block;
    size_t place = 0;
  };
  Standing standing() const;

 private:
  // Copies for Look(), which order nothing else; written with mutex_ held. One cache line, because
  // a decision looks at many ranks.
  struct alignas(64) Seen {
    // Of all replicas.
    std::atomic<double> queued{0};
    std::atomic<double> oldest{0};  // work of the largest of the oldest prefills
    std::atomic<int64_t> busy_since{0};
    std::atomic<uint64_t> context{0};
    std::atomic<uint32_t> requests{0};
    std::atomic<uint32_t> waiting{0};
    // Of this router's oldest prefill.
    std::atomic<double> own_oldest{0};
    std::atomic<int64_t> own_since{0};
    std::atomic<bool> silent{false};
  };
  static_assert(sizeof(Seen) == 64);

  // With mutex_ held.
  double OldestWork() const { return oldest_ == nullptr ? 0 : oldest_->work_; }
  double LargestOldest() const;
  void EndPrefill(Stay& stay, TimePoint now);
  void EndOverdue(TimePoint now, double unit);
  LoadShare Share() const;
  void Publish();
  // After a change of what this router has placed.
  void PublishOwn();

  Seen seen_;
  mutable std::mutex mutex_;
  Stay* oldest_ = nullptr;  // guarded by mutex_, as everything below
  Stay* youngest_ = nullptr;
  double queued_ = 0;
  uint64_t context_ = 0;
  uint32_t requests_ = 0;
  uint32_t waiting_ = 0;
  TimePoint own_since_{};   // when the oldest prefill began if there were no other replicas
  TimePoint busy_since_{};  // when the prefill in progress began, as far as own requests show it
  ForeignLoad foreign_;
  LoadShare shared_;  // as the block has it
  std::unique_ptr<LoadPlace> place_;
};

}  // namespace fathom
