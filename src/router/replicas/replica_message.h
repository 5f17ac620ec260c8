// What do replicas tell each other?
//
// Each replica is the origin of its own state, and of nothing else: what it has placed on each
// rank, which prompts it has just sent there, which worker its sessions are bound to. All of it is
// absolute: a message that is lost makes others late, never wrong for ever.
//
// Form      msgpack: ["fathom", major, minor, group, origin, incarnation, number, kind, content].
//           `content` is an array; a newer minor version may append to it, to the records in it, or
//           use further kinds. What is not known is passed over. Another major version is refused.
// Bounds    A message has at most kMostBytes, without its seal; longer states are told in several.
// Hostile   Decode() takes any bytes. Whether they are of the group says
//           router/replicas/origin_gate.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "engine/rank_label.h"
#include "text/tokens/prompt_marks.h"

namespace fathom {

// That the origin has heard another replica: the number of that one's last presence, and when.
struct ReplicaHearing {
  std::string id;
  uint64_t incarnation = 0;
  uint64_t number = 0;
  uint32_t ago_ms = 0;
  friend bool operator==(const ReplicaHearing&, const ReplicaHearing&) = default;
};

// "I am here", once per second, also when nothing changes.
struct ReplicaPresence {
  // A longer presence is malformed: each origin's last one is kept.
  static constexpr size_t kMostModels = 256;
  static constexpr size_t kMostHeard = 256;
  static constexpr size_t kLongestText = 1024;  // of the URL, of a pattern

  uint32_t interval_ms = 0;         // until the next one; 0: the origin leaves
  std::string url;                  // where it takes requests that are forwarded; or empty
  std::vector<std::string> models;  // patterns of the models that it serves; empty: all
  bool informed = false;            // its index follows the engines, so that it can be asked for it
  std::string version;              // of the program
  uint32_t workers = 0;             // that it can route to
  std::vector<ReplicaHearing> hears;
  // The same for the same workers, and for others only by chance.
  std::optional<uint64_t> worker_set;
  std::optional<bool> draining;  // it takes no new requests
  friend bool operator==(const ReplicaPresence&, const ReplicaPresence&) = default;
};

// The rank of a worker's requests for which no rank was chosen: those without a prompt, and all of
// a router that does not look at prompts.
constexpr uint32_t kNoRank = UINT32_MAX;

// What the origin has placed on one rank and has not ended.
struct RankGauge {
  RankLabel rank;
  double queued = 0;     // units of prefill work without a first byte (router/fleet/prefill_work.h)
  double oldest = 0;     // of these, the work of the one in progress
  uint32_t busy_ms = 0;  // since when a prefill is in progress there, as far as the origin knows
  uint64_t context = 0;  // tokens
  uint32_t requests = 0;
  uint32_t waiting = 0;  // of these, without a first byte
  bool idle() const { return requests == 0; }
  friend bool operator==(const RankGauge&, const RankGauge&) = default;
};

// The newest number of each rank that is named. Ranks from `from` to `to` that are not named are
// idle; without these, nothing is said of others.
struct Gauges {
  struct Range {
    RankLabel from;
    RankLabel to;
    friend bool operator==(const Range&, const Range&) = default;
  };
  std::optional<Range> whole;
  std::vector<RankGauge> ranks;  // in order
  friend bool operator==(const Gauges&, const Gauges&) = default;
};

// Prompts that were just sent, and are believed to be cached there.
struct SentPrompt {
  uint64_t id = 0;  // of the origin; another prompt has another one
  RankLabel rank;
  uint32_t believed_ms = 0;       // from now on; 0: no longer
  std::vector<PromptMark> marks;  // empty: as told before
  friend bool operator==(const SentPrompt&, const SentPrompt&) = default;
};
struct SentPromptsTold {
  bool whole = false;  // prompts of the origin that are not named are no longer believed
  std::vector<SentPrompt> prompts;
  friend bool operator==(const SentPromptsTold&, const SentPromptsTold&) = default;
};

// Which worker serves a session. The higher clock wins; of equal ones the smaller worker.
struct SessionBinding {
  uint64_t session = 0;  // its key
  uint64_t worker = 0;
  uint64_t clock = 0;
  uint32_t idle_ms = 0;
  friend bool operator==(const SessionBinding&, const SessionBinding&) = default;
};
struct SessionBindings {
  std::vector<SessionBinding> bindings;
  friend bool operator==(const SessionBindings&, const SessionBindings&) = default;
};

// Which worker has the state of a response.
struct ResponsePinTold {
  uint64_t response = 0;  // its key
  RankLabel rank;
  uint32_t tokens = 0;
  uint32_t idle_ms = 0;
  friend bool operator==(const ResponsePinTold&, const ResponsePinTold&) = default;
};
struct ResponsePinsTold {
  std::vector<ResponsePinTold> pins;
  friend bool operator==(const ResponsePinsTold&, const ResponsePinsTold&) = default;
};

// How far the origin has heard the events of a rank that is polled.
struct PolledRank {
  uint32_t rank = 0;
  uint64_t next = 0;  // all ids are below
  friend bool operator==(const PolledRank&, const PolledRank&) = default;
};

// An answer of an engine that hands out its events once, as it came
// (router/replicas/poll_exchange.h).
struct PolledAnswer {
  uint64_t worker = 0;
  uint32_t part = 0;  // of `parts`, if it is longer than a message
  uint32_t parts = 1;
  uint64_t answer = 0;  // number of the origin's answers
  std::string bytes;
  uint64_t process = 0;  // of the engine, counted
  std::vector<PolledRank> ranks;
  bool polls = true;  // the origin polls that worker
  friend bool operator==(const PolledAnswer&, const PolledAnswer&) = default;
};

// "Are you `to`, in that incarnation, now?" Nobody can answer with an old message.
struct Challenge {
  std::string to;
  uint64_t incarnation = 0;
  uint64_t nonce = 0;
  friend bool operator==(const Challenge&, const Challenge&) = default;
};
struct Proof {
  std::string to;
  uint64_t nonce = 0;
  friend bool operator==(const Proof&, const Proof&) = default;
};

// A question to one replica, and a piece of its answer (router/replicas/snapshot_*.h).
struct Ask {
  std::string to;
  uint64_t question = 0;
  std::string about;  // "ranks", "rank", "sessions", "pins"
  RankLabel rank;     // of "rank"
  uint64_t from = 0;  // piece
  friend bool operator==(const Ask&, const Ask&) = default;
};
struct Piece {
  std::string to;
  uint64_t question = 0;
  uint64_t piece = 0;
  uint64_t pieces = 0;  // in all; 0: it has nothing to answer
  std::string bytes;
  friend bool operator==(const Piece&, const Piece&) = default;
};

struct ReplicaMessage {
  static constexpr uint32_t kMajor = 1;
  static constexpr uint32_t kMinor = 0;
  static constexpr size_t kMostBytes = 256 << 10;
  static constexpr size_t kLongestName = 64;  // of a group or a replica

  using Content =
      std::variant<std::monostate, ReplicaPresence, Gauges, SentPromptsTold, SessionBindings,
                   ResponsePinsTold, PolledAnswer, Challenge, Proof, Ask, Piece>;

  uint32_t minor = kMinor;
  std::string group;
  std::string origin;
  uint64_t incarnation = 0;  // of the origin: another one for each process
  uint64_t number = 0;       // of its messages: from 1, increasing
  Content content;           // monostate: of a kind that is not known here
  friend bool operator==(const ReplicaMessage&, const ReplicaMessage&) = default;
};

// Letters, digits, '-', '_' and '.', at most kLongestName.
bool IsReplicaName(std::string_view name);

std::string Encode(const ReplicaMessage& message);
// Errors  kPeer: not such a message. kCaller: of another major version.
Result<ReplicaMessage> DecodeReplicaMessage(std::string_view bytes);

}  // namespace fathom
