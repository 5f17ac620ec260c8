// How is the Kubernetes API asked without changing anything in the cluster?
//
// Every request is a GET: there is no way here to send another, and none has a body. Lists are read
// page by page.
//
// Threads  On the loop.
// Memory   A list has at most kMaxListBytes of JSON and kMaxObjects objects; what is beyond is left
//          out, and said. A log is handed on as it comes, at most kMaxLogBytes of it.
// Errors   The peer's, in words for the operator: refused, not allowed (with what to ask for).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codec/json.h"
#include "diagnose/doctor/kubeconfig.h"
#include "diagnose/doctor/read_only_client.h"

namespace fathom {

// Objects of one kind, as the API names them.
struct KubeResource {
  std::string_view group;  // empty: the core
  std::string_view version;
  std::string_view plural;  // "deployments"
  std::string_view kind;    // "Deployment"
};

struct KubeList {
  bool known = true;          // the cluster has such objects at all
  std::vector<Json> objects;  // often without kind and apiVersion, as lists have them
  std::string incomplete;     // why there may be more; empty: these are all
};

class KubeClient {
 public:
  static constexpr size_t kPage = 200;
  static constexpr size_t kMaxListBytes = size_t{64} << 20;
  static constexpr size_t kMaxObjects = 10'000;
  static constexpr size_t kMaxLogBytes = size_t{256} << 20;
  static constexpr Duration kLogPatience = std::chrono::minutes(2);

  // Refuses certificates and keys that cannot be used.
  static Result<std::unique_ptr<KubeClient>> Create(Loop& loop, Resolver& resolver,
                                                    SentRequests& sent, const KubeAccess& access,
                                                    Duration patience);

  Task<Result<KubeList>> List(KubeResource resource, std::string network_namespace);

  // The end of a container's log, piece by piece, for at most kLogPatience; the number of bytes.
  using Sink = std::function<void(std::string_view piece)>;
  Task<Result<size_t>> ReadLog(std::string network_namespace, std::string pod,
                               std::string container, size_t lines, Sink sink);

  std::string url() const { return endpoint_.url.ToString(); }

 private:
  KubeClient(Loop& loop, Resolver& resolver, SentRequests& sent, Endpoint endpoint,
             std::string authorization, Duration patience)
      : loop_(loop),
        resolver_(resolver),
        sent_(sent),
        endpoint_(std::move(endpoint)),
        authorization_(std::move(authorization)),
        patience_(patience) {}

  struct ListProgress {
    std::string path;
    std::string next = {};  // what the next page is called; empty: this was the last
    size_t bytes = 0;       // of all pages so far
  };
  struct RelayedLog {
    int status = 0;
    size_t bytes = 0;
  };

  // A GET, which is counted as sent.
  FetchRequest Ask(std::string_view path, std::string_view query);
  // The status that came; the list has grown if that is 200.
  Task<Result<int>> ReadPage(ListProgress& progress, KubeList& list);
  static void TakeItems(const Json::Array& items, KubeList& list);
  Task<Result<RelayedLog>> Relay(ClientConnection& connection, const Sink& sink);

  Loop& loop_;
  Resolver& resolver_;
  SentRequests& sent_;
  const Endpoint endpoint_;
  const std::string authorization_;  // the header's value; empty: none
  const Duration patience_;
};

}  // namespace fathom
