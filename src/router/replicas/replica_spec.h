// Where are the other replicas, by the text of --replicas?
//
//   nats://[USER:PASSWORD@|TOKEN@]HOST[:PORT][,...]   through NATS servers; tls:// with TLS
//   zmq://HOST:PORT[,HOST:PORT...]                    directly, each one listed
//   dns+zmq://NAME:PORT                               directly, to all addresses of the name
//   k8s+zmq://NAMESPACE/SERVICE:PORT                  directly, to all pods of the Service, ready
//                                                     or not
//
// Errors  kCaller, with the part that is wrong and the form that is expected, never with
//         credentials.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace fathom {

struct NatsReplicas {
  std::vector<std::string> urls;  // "nats://HOST:PORT", without credentials
  bool tls = false;
  std::string user;  // of all urls
  std::string password;
  std::string token;
  friend bool operator==(const NatsReplicas&, const NatsReplicas&) = default;
};

enum class MeshFinding : uint8_t {
  kListed,      // the host is one replica
  kDns,         // each address of the host's name is one
  kKubernetes,  // each endpoint of the Service `host` is one
};

struct MeshPlace {
  std::string host;  // an IPv6 address without its brackets
  uint16_t port = 0;
  MeshFinding finding = MeshFinding::kListed;
  std::string network_namespace = {};  // of the Service
  std::string ToString() const;        // "HOST:PORT", "NAMESPACE/SERVICE:PORT"
  friend bool operator==(const MeshPlace&, const MeshPlace&) = default;
};
struct MeshReplicas {
  std::vector<MeshPlace> places;
  friend bool operator==(const MeshReplicas&, const MeshReplicas&) = default;
};

using ReplicaSpec = std::variant<NatsReplicas, MeshReplicas>;

Result<ReplicaSpec> ParseReplicaSpec(std::string_view text);

}  // namespace fathom
