// What do the logs of one source say about cache-aware routing?
//
// Counts, numbers and the words of Fathom's own warnings; never a line of the log, because prompts
// may stand in it. Everything has a bound, whatever the log.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "diagnose/logs/log_time.h"

namespace fathom {

enum class LogKind : uint8_t {
  // Routers, Dynamo's and Fathom's.
  kSelection,       // Selected worker ...
  kRouteCompleted,  // route request completed ... overlap_blocks=87
  // Dynamo's.
  kParentMissing,      // Failed to find parent block; skipping store operation
  kRemoveMissing,      // Failed to find block to remove; skipping remove operation
  kApplyFailed,        // Failed to apply event
  kStaleParent,        // Stale parent: worker no longer covers parent_hash
  kBlockNotPublished,  // Block not published. Block size must be 16 ... Block size is: 32
  kBlockTooLong,       // Block contains N tokens, which is greater than kv_block_size M
  kRouterMismatch,     // KV Router block size mismatch!
  kServiceMismatch,  // block_size mismatch for model=...; Block size mismatch for existing indexer
  kReplicaDropped,   // Dropping selector replica event with mismatched block size
  kSourceIgnored,    // Ignoring incompatible V2 KV state source advertisement
  kWorkersRejected,  // Rejected incompatible workers
  kNoReplay,         // No replay endpoint configured; batches lost
  kPublisherDisabled,  // kv_event_publisher_disabled
  kSourceNotObserved,  // kv_event_source_not_observed
  kSourceAmbiguous,    // kv_event_source_ambiguous
  kSourceRecovered,    // kv_event_source_recovered
  kGroupsUnknown,      // Failed to fetch KV cache group metadata; falling back ...
  kPrefillRouter,      // Activating prefill router
  // Fathom's.
  kSizeAgreed,     // Auto-configured KV block size to 32
  kSizeMismatch,   // Frontend KV block size (16) does not match worker block size (32).
  kReportDiffers,  // Worker reports KV block size 32, but 16 is configured
  kOddRank,        // KV events of a rank have blocks of 32 tokens, the model's ...
  kStaleReport,    // KV events have blocks of 32 tokens, the worker's own report says 16
  kSizeConflict,   // Workers disagree about the KV block size of model ...
  kWorkerRefused,  // Worker is not admitted: its KV block size (16) ...
  kRankTrusted,    // KV events of a rank are trusted
  kRankDoubted,    // A rank is doubted: CAUSE
  kRankAgain,      // A rank is trusted again
  kRankUnsteady,   // A rank was doubted repeatedly
  kEventsLost,     // KV events were lost; ...
  kNoFeed,         // No KV events from a worker; its cache contents are unknown
  kUnhealthy,      // Worker is not healthy
  kHealthy,        // Worker is healthy
  kFollowing,      // Following KV events
  kPromptsUnread,  // Prompts are routed without their prefix, by load alone
  kPromptsRead,    // Prompts are read again
  kRemoved,        // Worker removed
  // Engines'.
  kVllmCapacity,      // GPU KV cache size: 470,768 tokens
  kVllmConcurrency,   // Maximum concurrency for 8,192 tokens per request: 57.46x
  kVllmStatus,        // ... Running: 10 reqs, ... GPU KV cache usage: 91.2%, Prefix cache hit rate
  kVllmPreemption,    // Sequence group ... is preempted by PreemptionMode.RECOMPUTE
  kSglangCapacity,    // max_total_num_tokens=171008
  kSglangPrefill,     // Prefill batch ... #new-token: 8192, #cached-token: 27, token usage: 0.06
  kSglangDecode,      // Decode batch ... #running-req: 1, #token: 137, token usage: 0.00
  kSglangRetraction,  // KV cache pool is full. Retract requests. #retracted_reqs: 1
  kTrtllmCapacity,  // Max KV cache blocks per sequence: ... tokens per block=32, primary blocks=..
};
constexpr size_t kLogKinds = 48;
// What such a line says, shortened: "Failed to find parent block".
std::string_view Name(LogKind kind);

// How often something was said, and when. No time: the lines have none.
struct Tally {
  uint64_t lines = 0;
  uint64_t first_line = 0;  // number of the first one; the log begins with line 1
  std::optional<LogTime> first;
  std::optional<LogTime> last;
  uint64_t peak_per_minute = 0;

  explicit operator bool() const { return lines > 0; }
  // Over the time that the lines themselves span; nothing for less than a second.
  std::optional<double> PerMinute() const;
  bool operator==(const Tally&) const = default;
};

// How much of prompts was found cached.
struct ReuseFacts {
  uint64_t lines = 0;
  uint64_t counted = 0;         // that say how many blocks were cached
  uint64_t none_cached = 0;     // of those, with 0
  double cached_blocks = 0;     // their sum
  uint64_t with_tree_size = 0;  // that say how large the index was
  uint64_t tree_empty = 0;      // of those, with 0
  uint64_t max_tree_size = 0;
  // By cached blocks: 0, 1, 2-3, 4-7, ... 2^13 and more.
  static constexpr size_t kBuckets = 15;
  std::array<uint64_t, kBuckets> by_cached{};

  // What a line says of both; nothing where it does not.
  void Add(std::optional<double> cached, std::optional<uint64_t> tree_size);
  bool operator==(const ReuseFacts&) const = default;
};

// A rank as its log knows it: "5120084417763301" and 0. Of selections, what is beyond kMaxLogRanks
// is one rank "others"; of trust it is left out.
using LoggedRank = std::pair<std::string, uint32_t>;
constexpr size_t kMaxLogRanks = 256;

struct LoggedWork {
  uint64_t selections = 0;
  uint64_t none_cached = 0;
  double cached_blocks = 0;
  uint64_t events_refused = 0;  // lines of kParentMissing, kRemoveMissing and kStaleParent

  bool operator==(const LoggedWork&) const = default;
};

// Two block sizes that should be one. Which of them 0: not said.
struct SizeClash {
  LogKind kind{};
  uint32_t router = 0;    // what the router expects: configured, registered first, of the fleet
  uint32_t worker = 0;    // what the worker has: in its events, its report, its registration
  std::string subject;    // the worker's URL, or the model; empty: not said
  bool at_least = false;  // `worker` is a lower bound

  auto operator<=>(const SizeClash&) const = default;
};
constexpr size_t kMaxClashes = 128;  // others are counted in their kind alone

// The last that Fathom said of a rank.
struct TrustRecord {
  std::string worker_id;
  std::string state;     // "trusted", "doubted", "learning", "excluded"; empty: not said
  std::string cause;     // of the last doubt, "no_events"; kept when the rank is trusted again
  std::string evidence;  // of it
  std::string fix;
  uint64_t cost = 0;        // tokens prefilled that need not have been, the largest said
  uint64_t doubts = 0;      // how often
  uint32_t block_size = 0;  // of its events, if said
  uint64_t line = 0;        // number of the last line about it
  std::optional<LogTime> time;

  bool operator==(const TrustRecord&) const = default;
};

// The last that Fathom said of prompts that it does not read, of one model.
struct UnreadRecord {
  bool standing = false;  // no later line says that it is over
  std::string unread;     // "6 of the last 50"
  std::string reason;     // "no_tokenizer"
  std::string route;
  std::string engine;
  std::string fix;
  uint64_t first_cost = 0;  // tokens of the unread prompts, at the first line and at the last
  uint64_t cost = 0;
  uint64_t times = 0;  // how often it was said
  uint64_t line = 0;   // number of the last line about it
  std::optional<LogTime> first;
  std::optional<LogTime> last;

  bool operator==(const UnreadRecord&) const = default;
};
constexpr size_t kMaxUnreadModels = 64;  // others are counted in their kind alone

// Something is wrong with a worker, and no later line says that it is over: kUnhealthy, kNoFeed,
// kEventsLost, kPublisherDisabled or kSourceNotObserved.
struct Complaint {
  LogKind kind{};
  std::string worker;            // URL, or id; empty: not said
  std::optional<uint32_t> rank;  // nothing: of all its ranks, or not said

  auto operator<=>(const Complaint&) const = default;
};
constexpr size_t kMaxComplaints = 256;  // others are counted in their kind alone

// What engines say of themselves. Several engines in one log are one here: ranges and sums.
struct EngineFacts {
  struct Range {
    uint64_t low = 0;
    uint64_t high = 0;
    void Add(uint64_t value);
    bool operator==(const Range&) const = default;
  };
  Range kv_tokens;             // capacity; 0: not said
  Range tokens_per_block;      // TensorRT-LLM's
  double max_concurrency = 0;  // vLLM's, of requests as long as max_model_len; the smallest
  uint64_t max_model_len = 0;

  uint64_t status_lines = 0;  // of vLLM and SGLang, with the next four
  double max_usage = 0;       // share of the cache, 0 to 1
  double usage_sum = 0;       // divide by status_lines
  uint64_t max_running = 0;   // requests
  uint64_t max_waiting = 0;
  std::optional<double> hit_rate;  // vLLM's last, 0 to 1
  uint64_t preemptions = 0;        // vLLM's, SGLang's retracted requests
  uint64_t preemption_line = 0;    // number of the first line that tells of any
  uint64_t new_tokens = 0;         // SGLang's prefill batches: computed
  uint64_t cached_tokens = 0;      // and found

  bool operator==(const EngineFacts&) const = default;
};

struct LogFacts {
  uint64_t bytes = 0;
  uint64_t lines = 0;
  uint64_t recognised = 0;
  uint64_t cut = 0;              // lines that are longer than what is read of one
  uint64_t binary = 0;           // lines with NUL bytes
  std::optional<LogTime> first;  // of all lines that begin with a time, and the recognised ones
  std::optional<LogTime> last;

  std::array<Tally, kLogKinds> kinds;
  ReuseFacts selections;
  ReuseFacts completions;  // what newer Dynamo says when a request has ended
  std::map<LoggedRank, LoggedWork> ranks;
  std::map<SizeClash, uint64_t> clashes;         // and how often each was said
  std::map<LoggedRank, TrustRecord> trust;       // by URL and rank
  std::map<std::string, UnreadRecord> unread;    // by model
  std::map<Complaint, uint64_t> complaints;      // and the number of the last line that has it
  std::map<std::string, uint32_t> agreed_sizes;  // by model, as auto-configured; at most 64
  EngineFacts engines;

  const Tally& Of(LogKind kind) const { return kinds[static_cast<size_t>(kind)]; }
  bool operator==(const LogFacts&) const = default;
};

}  // namespace fathom
