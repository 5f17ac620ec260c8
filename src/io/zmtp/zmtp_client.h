// Follows a ZeroMQ publisher, or talks to a ROUTER, and connects again whenever it must.
//
//   TRY(auto client, ZmtpClient::Create(loop, resolver, budget, "tcp://worker-1:5557", options));
//   while (!stopped) {
//     auto next = client->Next(kNever);
//     const ZmtpNews news = co_await next;
//     if (news == ZmtpNews::kMessage) Handle(client->message());
//   }
//
// Reconnecting  Inside Next(), after a pause that doubles. A peer that was cut for a fault, or that
//               leaves at once, waits longer each time; one that stayed for a while does not.
// Stop()        Final. Next() then returns kCancelled. The client must live until Next() returned.
// Threads       The loop's.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "io/net/resolver.h"
#include "io/net/wakeable_wait.h"
#include "io/zmtp/zmtp_connection.h"
#include "io/zmtp/zmtp_endpoint.h"

namespace fathom {

struct ZmtpClientOptions {
  ZmtpType type = ZmtpType::kSub;
  std::string topic;  // of a SUB: only messages whose first frame begins with it
  ZmtpLimits limits;
  Duration first_pause = std::chrono::milliseconds(100);
  Duration longest_pause = std::chrono::seconds(5);
};

class ZmtpClient {
 public:
  // References must outlive it. Fails if the endpoint is invalid.
  static Result<std::unique_ptr<ZmtpClient>> Create(Loop& loop, Resolver& resolver,
                                                    ByteBudget& budget, std::string_view endpoint,
                                                    ZmtpClientOptions options);

  Task<ZmtpNews> Next(TimePoint deadline);
  // After kMessage, until the next call of Next().
  const ZmqMessage& message() const { return connection_->message(); }
  // False: not connected, or the connection broke.
  Task<bool> Send(const ZmqMessage& message);
  void Stop();

  bool connected() const { return connected_; }
  // After kDisconnected: why.
  ZmtpFault fault() const { return fault_; }

 private:
  ZmtpClient(Loop& loop, Resolver& resolver, ByteBudget& budget, ZmtpEndpoint endpoint,
             ZmtpClientOptions options)
      : loop_(loop),
        resolver_(resolver),
        budget_(budget),
        endpoint_(std::move(endpoint)),
        options_(std::move(options)),
        pause_(options_.first_pause) {}

  Task<ZmtpNews> Dial(TimePoint deadline);
  Task<ZmtpNews> DialOne(Address address, TimePoint deadline);
  Task<ZmtpNews> Pause(TimePoint deadline);
  bool Wanted() const;
  void Disconnected();

  Loop& loop_;
  Resolver& resolver_;
  ByteBudget& budget_;
  const ZmtpEndpoint endpoint_;
  const ZmtpClientOptions options_;
  std::unique_ptr<ZmtpConnection> connection_;
  WakeableWait* pausing_ = nullptr;
  TimePoint dial_at_{};
  TimePoint connected_at_{};
  Duration pause_;
  ZmtpFault fault_ = ZmtpFault::kNone;
  bool connected_ = false;
  bool stopped_ = false;
};

}  // namespace fathom
