// What does one member of etcd report of a range of keys, from this revision on?
//
// One connection, one watch. The stream has no deadline of its own: etcd is silent while nothing
// changes, so the caller finds out by other calls whether the member is still in order.
//
// Threads  One loop. One call at a time.
// Memory   One message, at most EtcdLines::kMaxLine.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "io/etcd/etcd_client.h"
#include "io/http/client_connection.h"

namespace fathom {

class EtcdStream {
 public:
  // Goes to the member at which the client's next call would begin, with the client's token.
  explicit EtcdStream(EtcdClient& client)
      : client_(client), endpoint_(client.endpoint()), connection_(client.loop()) {}

  Task<EtcdResult<void>> Open(std::string key, std::string range_end, uint64_t from_revision);
  // The next message, or nullopt if none has come until then. After an error the stream is over.
  Task<EtcdResult<std::optional<EtcdWatchMessage>>> Next(TimePoint until);
  // What waits here ends soon, but not inside this call.
  void Cancel() { connection_.Cancel(); }

 private:
  EtcdError Broken(EtcdCause cause, std::string_view what, int detail = 0) const;
  Task<EtcdResult<std::string>> ReadRefusal(TimePoint deadline);
  // Body bytes that have arrived, unframed; an error if the framing is broken or the body is over.
  EtcdResult<void> TakeBody();

  EtcdClient& client_;
  const Endpoint endpoint_;
  ClientConnection connection_;
  EtcdLines lines_;
};

}  // namespace fathom
