// How does what an engine says about its KV cache look to a person, or to a program?
//
// Each call gives whole lines, the newline included. A TextView is for people; a JsonView prints
// one object per line, whose `kind` is batch, gap, restart, malformed, connected, disconnected or
// summary.
//
// Privacy  Token ids are prompts in another spelling: they are shown only where it is asked for.
//          Salts keep tenants apart by being secret, so they are never shown, only that there is
//          one.
// Safety   Names come from the peer; nothing in them reaches a terminal as a control character.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "router/events/cache_event.h"

namespace fathom {

// Who said it, and when (unix seconds).
struct EventOrigin {
  std::string source;                     // the endpoint
  std::string label;                      // of the line, where there are several; empty: none
  std::optional<uint32_t> rank;           // nothing: not known
  std::optional<uint64_t> sequence = {};  // of the message, or the event's number where polled
  std::string topic = {};
  double time = 0;        // of arrival
  bool replayed = false;  // asked for, not heard live
};

// What has come, since the start or since the last summary.
struct EventTally {
  double seconds = 0;
  uint64_t batches = 0;
  uint64_t bytes = 0;
  uint64_t stored = 0;   // blocks
  uint64_t removed = 0;  // blocks
  uint64_t cleared = 0;
  uint64_t gaps = 0;
  uint64_t missing = 0;  // batches, in the gaps
  uint64_t restarts = 0;
  uint64_t malformed = 0;     // messages and events
  uint64_t ignored = 0;       // events without blocks
  std::optional<double> lag;  // seconds from the engine's clock to ours, of the last batch
  double most_lag = 0;

  void Add(const EventBatch& batch);
  void AddLag(double seconds_late);
};

class EventView {
 public:
  virtual ~EventView() = default;
  virtual std::string Batch(const EventOrigin& origin, const EventBatch& batch,
                            size_t bytes) const = 0;
  virtual std::string Gap(const EventOrigin& origin, uint64_t first, uint64_t last) const = 0;
  virtual std::string Restart(const EventOrigin& origin, uint64_t before, uint64_t now) const = 0;
  virtual std::string Malformed(const EventOrigin& origin, std::string_view reason,
                                size_t bytes) const = 0;
  virtual std::string Connection(const EventOrigin& origin, bool up) const = 0;
  virtual std::string Summary(const EventTally& tally, bool last) const = 0;
};

class TextView final : public EventView {
 public:
  TextView(bool tokens, bool color) : tokens_(tokens), color_(color) {}
  std::string Batch(const EventOrigin& origin, const EventBatch& batch,
                    size_t bytes) const override;
  std::string Gap(const EventOrigin& origin, uint64_t first, uint64_t last) const override;
  std::string Restart(const EventOrigin& origin, uint64_t before, uint64_t now) const override;
  std::string Malformed(const EventOrigin& origin, std::string_view reason,
                        size_t bytes) const override;
  std::string Connection(const EventOrigin& origin, bool up) const override;
  std::string Summary(const EventTally& tally, bool last) const override;

 private:
  std::string Paint(std::string_view code, std::string text) const;
  std::string Prefix(const EventOrigin& origin, bool numbered) const;
  std::string Describe(const StoredEvent& event) const;
  std::string Describe(const RemovedEvent& event) const;
  std::string Describe(const MovedEvent& event) const;
  std::string Describe(const ClearedEvent& event) const;

  const bool tokens_;
  const bool color_;
};

class JsonView final : public EventView {
 public:
  explicit JsonView(bool tokens) : tokens_(tokens) {}
  std::string Batch(const EventOrigin& origin, const EventBatch& batch,
                    size_t bytes) const override;
  std::string Gap(const EventOrigin& origin, uint64_t first, uint64_t last) const override;
  std::string Restart(const EventOrigin& origin, uint64_t before, uint64_t now) const override;
  std::string Malformed(const EventOrigin& origin, std::string_view reason,
                        size_t bytes) const override;
  std::string Connection(const EventOrigin& origin, bool up) const override;
  std::string Summary(const EventTally& tally, bool last) const override;

 private:
  const bool tokens_;
};

}  // namespace fathom
