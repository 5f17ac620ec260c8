// Are the prompts of this model read before they are routed?
//
// A prompt whose tokens are not known is routed by load, whatever the caches hold. A few of them
// are normal; more than kMostUnread of the last kLast, however slowly they came, is a state of the
// model: it is shown in /health and /metrics, and logged with its cost and its fix, again after
// kRepeated while it lasts.
//
//   unread   nothing of the prompt is known
//   by text  its text was compared with earlier ones, not its tokens
//
// Threads  Any. While every prompt is read, Note() is a few relaxed operations; else it takes a
//          mutex.
// Memory   kMostModels entries, with names of at most kLongestModel bytes. A further model takes
//          the place of one that has had no prompt for kRepeated.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/repeat_limit.h"
#include "engine/engine_kind.h"
#include "metrics/registry.h"
#include "router/gateway/gateway_metrics.h"

namespace fathom {

enum class UnreadReason : uint8_t {
  kNoTokenizer,  // no files here, and no engine of the model tokenizes
  kTemplate,     // the files' chat template cannot be used here, and no engine tokenizes
  kTimeout,      // no engine has tokenized it in time
  kError,        // engines fail to tokenize
  kOverload,     // too many are being tokenized already
  kTooLong,
  kMedia,      // it begins with an image or the like
  kContinued,  // it continues a response that only an engine has
  kTruncated,  // the request lets the engine leave out its beginning
};
constexpr size_t kUnreadReasons = 9;
// One spelling everywhere.
std::string_view Name(UnreadReason reason);

// What became of one prompt.
struct PromptReading {
  std::string_view model;
  Route route = Route::kChat;
  EngineKind engine = EngineKind::kUnknown;
  std::optional<UnreadReason> unread;  // why it has no tokens; nothing: it was read
  bool by_text = false;                // its text was compared instead
  uint64_t tokens = 0;                 // of the prompt, as far as can be told
};

class PromptWatch {
 public:
  static constexpr unsigned kLast = 50;
  static constexpr unsigned kMostUnread = kLast / 10;
  static constexpr size_t kMostModels = 256;
  static constexpr Duration kRepeated = std::chrono::minutes(10);

  PromptWatch(Registry& registry, Log& log);

  void Note(const PromptReading& reading, TimePoint now);

  enum class Cause : uint8_t { kNone, kUnread, kByText };
  struct Standing {
    Cause cause = Cause::kNone;
    double share = 0;                    // of the last prompts, kLast at most
    std::optional<UnreadReason> reason;  // of the latest one
    Route route = Route::kChat;
    EngineKind engine = EngineKind::kUnknown;
    uint64_t cost = 0;  // tokens of the unread prompts since the state began
    std::string fix;

    bool degraded() const { return cause == Cause::kUnread; }
  };
  Standing StandingOf(std::string_view model) const;
  // Whether one of the model's last prompts was routed by its text.
  bool HasByText(std::string_view model) const;
  // Models whose prompts are not read, for one-sentence summaries, if one has come `since` then.
  std::vector<std::string> Unread(TimePoint since = {}) const;
  // Without those that have left the fleet.
  std::vector<std::string> UnreadIn(const FleetSnapshot& fleet, TimePoint since = {}) const;

 private:
  // The last prompts, one bit each: the newest is bit 0.
  struct Register {
    static constexpr uint64_t kMask = (uint64_t{1} << kLast) - 1;

    void Push(bool bit) { bits = (bits << 1 | (bit ? 1 : 0)) & kMask; }
    unsigned count() const { return static_cast<unsigned>(std::popcount(bits)); }

    uint64_t bits = 0;
  };
  struct Entry {
    Register unread;
    Register by_text;
    unsigned seen = 0;  // of the last kLast
    std::optional<UnreadReason> reason;
    Route route = Route::kChat;
    EngineKind engine = EngineKind::kUnknown;
    bool degraded = false;
    bool logged = false;  // in this state
    uint64_t cost = 0;
    RepeatLimit lines;
    TimePoint last{};  // prompt

    bool MayGo(TimePoint now) const;
  };
  // Prompts that were read, by a hash of their model, up to kLast: models that share a place have
  // a lower share than their own.
  static constexpr size_t kReadPlaces = 1024;

  static Standing Judge(const Entry& entry);
  std::atomic<uint8_t>& ReadPlace(std::string_view model);
  void CountRead(std::string_view model);
  Entry* EntryOf(std::string_view model, bool wanted, TimePoint now);
  bool MakeRoom(TimePoint now);
  void Update(Entry& entry, const PromptReading& reading, TimePoint now);
  void Complain(std::string_view model, Entry& entry, TimePoint now);
  void Relax(std::string_view model, Entry& entry);

  Log& log_;
  std::array<std::array<Counter*, kUnreadReasons>, kRoutes> unread_{};
  std::atomic<size_t> remembered_{0};                     // relaxed: entries
  std::array<std::atomic<uint8_t>, kReadPlaces> read_{};  // relaxed
  mutable std::mutex mutex_;                              // guards the rest
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace fathom
