// Publishes one rank's KV events on ZeroMQ, and replays the last ones to whoever asks.
//
//   PUB     [topic][sequence: 8 bytes, big-endian][payload], one message per batch, from 0
//   ROUTER  [peer][""][first sequence] is answered with every batch kept from there on, and an end
//           mark; what looks otherwise is dropped without a word, as the engines do.
//
// Restart() closes the sockets once what was published has left, binds the same ports again as soon
// as libzmq has let go of them, and publishes what comes meanwhile when subscribers can be back: a
// real engine loads its model first.
//
// Threads  One loop.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/net/loop.h"
#include "io/net/task.h"
#include "io/net/zmq.h"
#include "lab/mock/event_outlet.h"
#include "lab/mock/event_wire.h"
#include "lab/mock/mock_options.h"

namespace fathom {

// Where a rank publishes. A bound port 0 picks a free one.
struct EventPlaces {
  std::string publish;  // endpoint
  bool dial = false;    // connects to it instead of binding it
  std::optional<std::string> replay;
};

class EventPublisher final : public EventOutlet {
 public:
  // References must outlive it. An error names the endpoint that cannot be had.
  static Result<std::unique_ptr<EventPublisher>> Create(ZmqContext& context, Loop& loop,
                                                        const EventWire& wire,
                                                        const KvEventOptions& options, size_t rank,
                                                        EventPlaces places);

  // Begins to answer those who want a replay. On the loop.
  void Start();

  void Add(const std::vector<KvEvent>& batch, BatchFate fate) override;
  void Restart() override;

  // With the ports that it got.
  const EventPlaces& places() const { return places_; }

 private:
  enum class Presence : uint8_t { kHere, kLeaving, kGone, kBack };

  struct Kept {
    uint64_t sequence;
    std::string payload;
  };
  struct Alarm : Timer {
    explicit Alarm(EventPublisher& p) : Timer(&OnFire), publisher(p) {}
    static void OnFire(Timer& timer) { static_cast<Alarm&>(timer).publisher.Proceed(); }
    EventPublisher& publisher;
  };

  EventPublisher(ZmqContext& context, Loop& loop, const EventWire& wire,
                 const KvEventOptions& options, size_t rank, EventPlaces places)
      : context_(context),
        loop_(loop),
        wire_(wire),
        options_(options),
        rank_(rank),
        places_(std::move(places)),
        alarm_(*this) {}

  Result<void> Open();
  void Proceed();
  void Wait(Duration time);
  void Begin();
  static Task<void> AnswerReplays(EventPublisher& self, ZmqSocket& socket);
  void Replay(ZmqSocket& socket, const ZmqMessage& request);
  bool Answer(ZmqSocket& socket, const std::string& peer, std::string_view topic, uint64_t sequence,
              std::string_view payload);

  ZmqContext& context_;
  Loop& loop_;
  const EventWire& wire_;
  const KvEventOptions& options_;
  const size_t rank_;
  EventPlaces places_;
  std::unique_ptr<ZmqSocket> publisher_;
  std::unique_ptr<ZmqSocket> replayer_;
  Presence presence_ = Presence::kHere;  // the others are the steps of a restart, in this order
  Alarm alarm_;
  uint64_t next_ = 0;
  std::deque<Kept> kept_;
  std::deque<ZmqMessage> unsent_;  // while away
};

}  // namespace fathom
