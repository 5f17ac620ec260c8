// Follows event streams and hands what they say to a report: the sockets behind fathom listen.
//
// Threads  All of it on the loop's thread; it may be made before the loop runs.
// End      It stops the loop when there is nothing left to do; status() then says how it went.
#pragma once

#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "diagnose/listen/event_finder.h"
#include "diagnose/listen/event_report.h"
#include "io/zmtp/zmtp_client.h"
#include "io/zmtp/zmtp_listener.h"

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

  EventListener(Loop& loop, const ListenOptions& options, EventReport& report, Note note);

  void Start();
  // No more is shown from now on, and the loop ends.
  void Stop(int status);

  int status() const { return status_; }

 private:
  struct Stream {
    HeardStream heard;
    EventSource source;
    std::unique_ptr<ZmtpClient> client;      // null if bound
    std::unique_ptr<ZmtpListener> listener;  // null if connected
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
  std::unique_ptr<Stream> Describe(EventSource source, bool shared) const;
  Stream& Adopt(std::unique_ptr<Stream> stream);
  Task<void> Follow(Stream& stream);
  Task<void> FollowBound(Stream& stream);
  Task<void> FollowPeer(Stream& stream, ZmtpConnection& peer);
  Task<void> Replay(Stream& stream);
  Task<void> ReceiveReplay(Stream& stream, ZmtpClient& client);
  Task<void> Poll(Poller& poller, std::string first_answer);
  void TakePoll(Poller& poller, std::string_view body);
  void Hear(Stream& stream, const ZmqMessage& message, bool replayed);
  void Connection(Stream& stream, bool up);
  void NoteFault(const Stream& stream, ZmtpFault fault);
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
  Log quiet_{STDERR_FILENO, LogLevel::kOff};  // of bound sockets; problems are noted instead
  ByteBudget memory_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Poller>> pollers_;
  bool stopped_ = false;
  int status_ = 0;
};

// Unix seconds.
double WallClock();

}  // namespace fathom
