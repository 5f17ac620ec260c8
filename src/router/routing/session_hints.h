// Which rank served the last request of this agent's session, as far as its client gives a hint?
//
// A hint never binds a request, as X-Session-ID does. It does two things
// (router/routing/steering.h):
//   ties    Among ranks that cost the same, the hinted one is chosen.
//   events  Until the events of the session's last prompt have had the time to arrive, that prompt
//   is
//           believed to be cached where it was sent, if the new one begins with it.
//
// Hints stay with the replica that made them: they only decide ties, and what they say of a prompt
// the others hear as a prompt that was just sent.
//
// Threads  Any; sharded mutexes, only for requests with a hint.
// Memory   At most kMost hints, each until it has been idle for the TTL. The hint's own value is
// not
//          kept, only a hash of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "router/index/holding.h"
#include "router/index/prefix_index.h"
#include "router/routing/idle_map.h"
#include "text/tokens/prompt_marks.h"

namespace fathom {

// Where a hint stands in a request, in the usual order: sessions before users.
enum class HintKind : uint8_t {
  kClaudeCodeSession,
  kCodexThread,
  kDynamoSession,
  kPromptCacheKey,
  kMetadataUser,
  kSafetyIdentifier,
  kUser,
};
constexpr size_t kHintKinds = 7;
// The header or member, as clients write it.
std::string_view Name(HintKind kind);

// The list of --session-hints: names in the order in which they count, or "none". Errors  kCaller.
Result<std::vector<HintKind>> ParseSessionHints(std::span<const std::string> names);

// What is remembered of a session's last request.
struct HintedRank {
  RankLabel rank;
  uint64_t life = 0;  // of the engine that it was sent to
  PromptMark mark;    // the deepest one of its prompt; 0 tokens: the prompt is not known
};

class SessionHints {
 public:
  static constexpr size_t kMost = 1 << 18;
  // Events of a prompt arrive within this time after its answer has begun, or never.
  static constexpr Duration kEventsLate = std::chrono::seconds(30);

  // `secret` prevents clients from choosing values that collide.
  SessionHints(Duration ttl, uint64_t secret) : ranks_(ttl, kMost), secret_(secret) {}

  bool enabled() const { return ranks_.ttl() > Duration::zero(); }

  struct About {
    HintKind kind;
    std::string_view value;
    std::string_view part;  // of the session, for example one of its agents; or empty
    std::string_view model;
    bool has_prompt = true;  // routes without prompts are apart: they are routed by other loads
  };
  // Hints of other kinds, for other models and of other parts never have the same key, except by
  // chance: then they share a rank.
  uint64_t KeyOf(const About& about) const;

  using Found = IdleMap<HintedRank>::Found;
  std::optional<Found> Find(uint64_t key, TimePoint now) { return ranks_.Find(key, now); }
  void Remember(uint64_t key, const HintedRank& rank, TimePoint now) { ranks_.Put(key, rank, now); }
  size_t size() const { return ranks_.size(); }

 private:
  IdleMap<HintedRank> ranks_;
  const uint64_t secret_;
};

}  // namespace fathom
