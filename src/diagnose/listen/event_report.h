// What is there to say about the messages of some event streams, one after another?
//
// Looks at sequence numbers, decodes, counts, and prints through a view. Knows nothing of sockets.
//
// Threads  One.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "diagnose/listen/event_view.h"
#include "diagnose/listen/sequence_watch.h"
#include "router/events/trtllm_dialect.h"

namespace fathom {

// What is known of one stream.
struct HeardStream {
  EventOrigin origin;   // as far as the endpoint decides it
  bool shared = false;  // several engines speak here, so topic and rank tell sequences apart
  std::map<std::pair<std::string, uint32_t>, SequenceWatch> watches = {};
  // Where the replay ended: live batches up to here have been shown already.
  struct ReplayEnd {
    uint64_t sequence;
    double timestamp;
  };
  std::optional<ReplayEnd> replay_end = {};
  bool connected = false;
};

// One message, whatever its frames were.
struct HeardMessage {
  std::string_view topic;
  std::optional<uint64_t> sequence;  // nothing: it had none, which is wrong
  std::string_view payload;
  bool replayed = false;
};

class EventReport {
 public:
  using Printer = std::function<void(std::string_view)>;

  // `begun` and every `now` are unix seconds.
  EventReport(const EventView& view, Printer print, double begun)
      : view_(view), print_(std::move(print)), begun_(begun), summarised_(begun) {}

  void OnMessage(HeardStream& stream, const HeardMessage& message, double now);
  // TensorRT-LLM's, which come one by one and without a time.
  void OnPolled(HeardStream& stream, PolledEvent event, double now);
  void OnMalformed(HeardStream& stream, std::string_view reason, size_t bytes, double now);
  void OnBytes(size_t bytes);
  void OnConnection(HeardStream& stream, bool up, double now);

  // Of the time since the last one; the last one is of all the time.
  void Summarise(double now);
  void Conclude(double now);

  // Messages shown, well formed or not.
  uint64_t seen() const { return seen_; }

 private:
  void Check(HeardStream& stream, const EventOrigin& origin);
  bool AlreadyShown(HeardStream& stream, const HeardMessage& message, const EventBatch& batch);
  template <class Change>
  void Count(const Change& change);

  const EventView& view_;
  const Printer print_;
  const double begun_;
  double summarised_;
  EventTally recent_;
  EventTally total_;
  uint64_t seen_ = 0;
};

}  // namespace fathom
