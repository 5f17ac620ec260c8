// How well does an engine's stream of KV events flow?
//
// Listens for a while, as one more subscriber: a SUB socket takes nothing away from others, and the
// replay socket is not used. Joining late is no fault: a block whose parent was stored before we
// came is counted apart from one whose parent we saw leave.
//
// TensorRT-LLM, where it is polled, hands out each event once: it is heard only with --drain.
//
// Threads  On the loop.
// Memory   kMaxHashes blocks (then parents are no longer judged, and `forgot` says so), kLags lags,
//          kMaxSizes block sizes.
// Errors   None; `problem` says why nothing could be heard.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "diagnose/doctor/read_only_client.h"
#include "io/net/resolver.h"
#include "io/net/zmq_message.h"
#include "router/events/cache_event.h"
#include "router/events/event_source.h"
#include "router/events/trtllm_dialect.h"

namespace fathom {

struct StreamLook {
  EventSource source;
  bool listened = false;
  bool connected = false;  // at some time
  bool polled = false;
  std::string problem;
  double seconds = 0;  // that it listened

  uint64_t batches = 0;
  uint64_t bytes = 0;
  uint64_t stored_events = 0;
  uint64_t stored_blocks = 0;
  uint64_t removed_blocks = 0;
  uint64_t moved_blocks = 0;
  uint64_t clears = 0;
  uint64_t malformed = 0;     // batches and events
  std::string first_problem;  // of these
  uint64_t gaps = 0;
  uint64_t missing_batches = 0;
  uint64_t restarts = 0;

  uint64_t parents_known = 0;    // stored while we listened, or the block begins a prompt
  uint64_t parents_before = 0;   // not seen: stored before we came
  uint64_t parents_removed = 0;  // seen leaving
  bool forgot = false;

  std::set<uint32_t> block_sizes;
  std::optional<double> median_lag;  // seconds, by the engine's clock
  std::optional<double> largest_lag;
  uint64_t tokens = 0;
  uint64_t foreign_tokens = 0;  // ids that the tokenizer does not have
  uint64_t largest_token = 0;

  double StoredPerSecond() const { return seconds > 0 ? Rate(stored_blocks) : 0; }
  double RemovedPerSecond() const { return seconds > 0 ? Rate(removed_blocks) : 0; }

 private:
  double Rate(uint64_t blocks) const { return static_cast<double>(blocks) / seconds; }
};

// What the messages of one stream add up to. Knows nothing of sockets.
class StreamTally {
 public:
  static constexpr size_t kMaxHashes = size_t{1} << 20;
  static constexpr size_t kLags = 4096;
  static constexpr size_t kMaxSizes = 64;

  // Ids from `vocabulary` on are foreign; 0: not known.
  explicit StreamTally(EventSource source, uint64_t vocabulary = 0);

  // `now` is unix seconds.
  void TakeMessage(const ZmqMessage& message, double now);
  void TakePoll(std::string_view body);
  // It is subscribed, whether or not anything comes.
  void Listen() { look_.listened = true; }
  void Connected() { look_.connected = true; }
  void GiveUp(std::string problem) { look_.problem = std::move(problem); }
  StreamLook Conclude(double seconds);

 private:
  struct Copies {
    uint32_t held = 0;
    uint64_t era = 0;
  };

  void TakeSequence(std::string_view frame);
  void TakeLag(double lag);
  void Apply(const CacheEvent& event);
  void Apply(const StoredEvent& event);
  void Apply(const RemovedEvent& event);
  void JudgeParent(const StoredEvent& event);
  void CountTokens(const StoredEvent& event);
  void Hold(uint64_t hash);
  void Malformed(std::string_view problem, uint64_t times = 1);

  StreamLook look_;
  const uint64_t vocabulary_;
  std::optional<uint64_t> last_sequence_;
  std::unordered_map<uint64_t, Copies> blocks_;  // a block of an earlier era has left
  uint64_t era_ = 0;
  std::vector<double> lags_;  // the latest, in a ring
  size_t next_lag_ = 0;
  TrtllmDecoder decoder_;  // of polls
};

// Subscribes until the loop's time is `until`.
Task<StreamLook> ListenTo(Loop& loop, Resolver& resolver, EventSource source, uint64_t vocabulary,
                          TimePoint until);
// Polls; only for a client that may drain.
Task<StreamLook> PollUntil(ReadOnlyClient& client, uint64_t vocabulary, TimePoint until);

}  // namespace fathom
