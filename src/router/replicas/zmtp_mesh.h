// How do replicas reach each other directly, without NATS?
//
// Each one listens, and dials all others: those that are listed, all addresses that a name has,
// which is looked up again every few seconds, and all endpoints of a Service. Messages are ZeroMQ's
// (ZMTP 3), from a PUB that dials to a SUB that listens.
//
// Ourselves   Our own address among the others is harmless: it is recognised, and nothing is sent.
// Strangers   Whoever can reach the port may connect and be heard; whether a message is believed is
//             decided above (router/replicas/origin_gate.h). Nothing is sent to those that connect.
//             They have kMostStrangers of kMostIncoming connections, so that replicas whose
//             addresses are known find a place. A connection that is silent for kMostSilence is
//             closed.
// Memory      Per link an outbox (MeshLink), per connection 32 KiB and at most one message; large
//             messages of all connections together have kMostReceiving.
// Threads     All calls on the loop but Create(), which is called before it runs or on it.
// Ending      After Stop() the loop has to run a little longer: what waits on it ends then, and may
//             do so after the destructor.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "io/kube/kube_client.h"
#include "io/net/resolver.h"
#include "router/replicas/carrier.h"
#include "router/replicas/replica_message.h"
#include "router/replicas/replica_spec.h"

namespace fathom {

struct ZmtpMeshOptions {
  std::string id;      // ours
  std::string listen;  // "HOST:PORT", ":PORT" for all addresses
  MeshReplicas replicas;
  // For replicas behind a Service; on the same loop. Outlives the mesh and what ends after it.
  KubeClient* kube = nullptr;
  Duration lookup_every = std::chrono::seconds(3);
  Duration most_silence = std::chrono::seconds(30);
  Duration patience = std::chrono::seconds(3);  // before a replica is logged as not reached
};

class ZmtpMesh final : public Carrier {
 public:
  static constexpr size_t kMostLinks = 64;
  static constexpr size_t kMostIncoming = 128;
  static constexpr size_t kMostStrangers = 64;
  static constexpr size_t kMostReceiving = 32 << 20;
  static constexpr size_t kLongestMessage = ReplicaMessage::kMostBytes + 64;

  // Listens at once, so that an address in use is an error. References must outlive it and what
  // ends after it.
  static Result<std::unique_ptr<ZmtpMesh>> Create(Loop& loop, Resolver& resolver, Log& log,
                                                  ZmtpMeshOptions options);
  ~ZmtpMesh() override;

  void Start(OnMessage on_message) override;
  void Stop() override;
  bool Publish(std::string_view message) override;
  bool Send(std::string_view replica, std::string_view message) override;
  Status status() const override;

  // Where it listens, with the port that the kernel chose for port 0.
  Address address() const;

 private:
  class Core;
  explicit ZmtpMesh(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  const std::shared_ptr<Core> core_;
};

}  // namespace fathom
