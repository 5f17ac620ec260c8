// Which other replica serves this model, and where is it?
//
// A replica that follows some models alone (--models) forwards requests for others to a replica
// that has them. Each replica tells the group its models and its URL
// (router/replicas/replica_message.h); Set() takes what was told.
//
// Trust    Requests go to these URLs with the client's credentials. Set() is for a group whose
//          messages are sealed with a key, and for no other.
// Choice   In turn among those that have the model; one that drains, or has just failed, is asked
//          last.
// Threads  Any. A mutex is held for a look at each peer, and only requests for models that are not
//          served here come by.
// Memory   At most kMost peers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "io/http/client_connection.h"
#include "router/fleet/model_slice.h"

namespace fathom {

// As another replica describes itself.
struct PeerReplica {
  std::string id;
  std::string url;                  // where clients reach it; empty: it cannot be forwarded to
  std::vector<std::string> models;  // patterns; empty: all
  bool draining = false;            // it refuses new requests, so that clients send them again
  friend bool operator==(const PeerReplica&, const PeerReplica&) = default;
};

// How to reach it. Immutable but for the time of its last failure.
struct PeerRoute {
  std::string id;
  Endpoint endpoint;
  std::string host_header;
  WorkerId pool_key;                          // of its connections; no worker's
  mutable std::atomic<int64_t> failed_at{0};  // nanoseconds of the steady clock; 0: never
};

class PeerDirectory {
 public:
  static constexpr size_t kMost = 64;
  static constexpr Duration kAskLast = std::chrono::seconds(1);  // after a failure

  // The authorities of https:// URLs; an empty name: the system's.
  explicit PeerDirectory(std::string ca_file = {}) : ca_file_(std::move(ca_file)) {}

  // Whether a replica could be reached there.
  static Result<void> CheckUrl(std::string_view url);

  // All others that are in the group now. The errors are of those that cannot be used: a URL or
  // patterns that are invalid. Reads files if a URL is new.
  std::vector<Error> Set(std::vector<PeerReplica> peers);

  // Null: none serves the model, or none that does has a URL. `but` is not chosen; it may be null.
  std::shared_ptr<const PeerRoute> Find(std::string_view model, TimePoint now,
                                        const PeerRoute* but = nullptr) const;
  // The id of a replica that serves the model and has no URL (--replica-url); or empty.
  std::string WithoutUrl(std::string_view model) const;

  // It did not answer.
  static void Failed(const PeerRoute& peer, TimePoint now) {
    peer.failed_at.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  }

  // What became of requests for models that are not served here.
  struct Counts {
    std::atomic<uint64_t> forwarded{0};    // a replica has answered
    std::atomic<uint64_t> failed{0};       // none has, or its answer broke off
    std::atomic<uint64_t> misdirected{0};  // came forwarded, and are not served here either
  };
  Counts& counts() { return counts_; }
  const Counts& counts() const { return counts_; }

 private:
  struct Peer {
    PeerReplica told;
    ModelSlice slice;
    std::shared_ptr<const PeerRoute> route;  // null: it has no URL
  };

  Result<Peer> MakePeer(const PeerReplica& told) const;

  const std::string ca_file_;
  mutable std::atomic<uint32_t> turn_{0};
  Counts counts_;
  mutable std::mutex mutex_;
  std::vector<Peer> peers_;  // guarded by mutex_
};

}  // namespace fathom
