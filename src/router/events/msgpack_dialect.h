// What does a message of an engine's event stream contain?
//
// One decoder for vLLM (0.9 to today), SGLang and TensorRT-LLM's streaming: they share the envelope
// [timestamp, [event...], rank], and the shape of an event shows which release made it.
//
//   array  [tag, field...], the fields by position. Later releases append fields: missing ones at
//          the end are nil, additional ones are skipped. The seventh field is a LoRA name (vLLM:
//          string or nil) or {"cache_salt": ...} (SGLang: map).
//   map    {"type": tag, name: field...}, in any order; unknown names are skipped.
//
// Errors  Bytes that are not msgpack, or have no such envelope: the batch is an error (the peer's).
//         An invalid event inside is left out and counted in `malformed`. The other events of the
//         batch are still valid, and losing them too would cost more than losing one.
// Limits  kMax... below; an event beyond them is malformed. An event is decoded in one go, so they
//         also bound how long others wait: engines report what one step has stored, far below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/msgpack.h"
#include "router/events/cache_event.h"

namespace fathom {

constexpr uint32_t kMaxEventsPerBatch = 1u << 20;
constexpr uint32_t kMaxHashesPerEvent = 1u << 20;
constexpr uint32_t kMaxTokensPerEvent = 1u << 20;
constexpr uint32_t kMaxKeysPerEvent = 1u << 18;  // extra keys of all its blocks
constexpr size_t kMaxEventBytes = 8u << 20;
constexpr uint32_t kMaxBlockSize = 1u << 20;
constexpr size_t kMaxNamespaceBytes = 4096;  // of a LoRA name or a salt

Result<EventBatch> DecodeEventBatch(std::string_view payload);

// Decodes a large batch in steps, and has the same results.
//
//   EventBatchReader reader(payload);         // the payload must outlive it
//   while (!*reader.Check(kSome)) Yield();    // afterwards head() is complete
//   while (reader.Next(event)) Apply(event);  // head() counts what Next() leaves out
class EventBatchReader {
 public:
  explicit EventBatchReader(std::string_view payload) : in_(payload), events_(payload) {}

  // Reads about `bytes` more. True: all of it was read, and the envelope is valid.
  Result<bool> Check(size_t bytes);
  // The batch without its events.
  const EventBatch& head() const { return head_; }
  // Decodes one event; nullopt: it is left out. False: there are no more.
  bool Next(std::optional<CacheEvent>& event);

 private:
  // An event beyond kMaxEventBytes, which Next() does not look into.
  struct TooLarge {
    uint32_t number;
    MsgpackReader after;
  };

  Result<> Begin();
  Result<bool> CheckEvents(size_t bytes);
  void Passed();
  bool NextIsTooLarge() const;

  MsgpackReader in_;      // of Check()
  MsgpackReader events_;  // of Next()
  EventBatch head_;
  bool begun_ = false;
  uint32_t elements_ = 0;   // of the envelope
  uint32_t count_ = 0;      // of the events
  uint32_t checked_ = 0;    // events that Check() has passed
  size_t event_begin_ = 0;  // of the event that it is in
  uint64_t pending_ = 1;    // values of that event, still to be passed
  std::vector<TooLarge> too_large_;
  size_t skipped_ = 0;  // of `too_large_`, by Next()
  uint32_t next_ = 0;
};

}  // namespace fathom
