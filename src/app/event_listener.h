// Follows event streams and hands what they say to a report: the sockets behind fathom listen.
//
// Threads  All of it on the loop's thread; it may be made before the loop runs.
// End      It stops the loop when there is nothing left to do; status() then says how it went.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/event_finder.h"
#include "app/event_report.h"
#include "net/zmq.h"

namespace fathom {

struct ListenOptions {
  std::vector<std::string> endpoints;
  std::string bind;
  std::string topic;
  bool replay = false;
  std::string replay_endpoint;
  bool drain = false;
  std::string api_key;
  Duration interval{};
  Duration limit{};  // 0: none
  Duration wait{};   // 0: for ever
  uint64_t count = 0;
};

class EventListener {
 public:
  using Note = std::function<void(std::string_view)>;

  EventListener(Loop& loop, const ListenOptions& options, EventReport& report, Note note)
      : loop_(loop), options_(options), report_(report), note_(std::move(note)) {}

  void Start();
  // No more is shown from now on, and the loop ends.
  void Stop(int status);

  int status() const { return status_; }

 private:
  struct Stream {
    HeardStream heard;
    EventSource source;
    std::unique_ptr<ZmqSocket> socket;
  };
  struct Poller {
    HeardStream heard;
    Endpoint endpoint;
    TrtllmDecoder decoder;
    bool failing = false;
    bool said_held = false;
  };

  Task<void> Begin();
  Task<bool> BeginWorker(std::string url);
  bool BeginSource(EventSource source, const std::string& named);
  bool BeginBound();
  std::unique_ptr<Stream> Open(EventSource source, bool shared);
  void Adopt(std::unique_ptr<Stream> stream);
  Task<void> Follow(Stream& stream);
  Task<void> Replay(Stream& stream);
  Task<void> ReceiveReplay(Stream& stream, ZmqSocket& socket);
  Task<void> Poll(Poller& poller, std::string first_answer);
  void TakePoll(Poller& poller, std::string_view body);
  void Hear(Stream& stream, const ZmqMessage& message, bool replayed);
  void StopWhenEnough();

  Task<void> SummariseForever();
  Task<void> StopAfterLimit();
  Task<void> StopWhenNothingComes();
  void SayWhatToCheck() const;
  std::string LabelOf(const std::string& endpoint) const;

  Loop& loop_;
  const ListenOptions options_;
  EventReport& report_;
  const Note note_;
  Resolver resolver_;
  ZmqContext context_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Poller>> pollers_;
  bool stopped_ = false;
  int status_ = 0;
};

// Unix seconds.
double WallClock();

}  // namespace fathom
