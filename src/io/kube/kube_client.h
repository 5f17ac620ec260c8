// How is the Kubernetes API asked without changing anything in the cluster?
//
// Every request is a GET: there is no way here to send another, and none has a body. Lists are read
// page by page. One client serves a process, whatever follows objects with it (kube_follower.h);
// each request shows who we are at that moment (kube_login.h).
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

#include "base/clock.h"
#include "codec/json.h"
#include "io/kube/kube_call.h"
#include "io/kube/kube_login.h"
#include "io/kube/kube_resource.h"
#include "io/kube/kubeconfig.h"

namespace fathom {

struct KubeList {
  bool known = true;          // the cluster has such objects at all
  std::vector<Json> objects;  // often without kind and apiVersion, as lists have them
  std::string incomplete;     // why there may be more; empty: these are all
};

struct KubeClientOptions {
  Duration patience = std::chrono::seconds(30);  // for one page, or the head of an answer
  // Told of each request before it is sent: its method, and its URL without the query.
  std::function<void(std::string_view method, const std::string& target)> on_request = nullptr;
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
                                                    const KubeAccess& access,
                                                    KubeClientOptions options = {});

  Task<Result<KubeList>> List(KubeResource resource, std::string network_namespace);

  // The end of a container's log, piece by piece, for at most kLogPatience; the number of bytes.
  using Sink = std::function<void(std::string_view piece)>;
  Task<Result<size_t>> ReadLog(std::string network_namespace, std::string pod,
                               std::string container, size_t lines, Sink sink);

  // For a request that reads its answer itself: who we are now, and that it is about to be sent.
  Task<Result<std::shared_ptr<const KubePass>>> Enter() { return login_->Current(); }
  void Announce(const std::string& path);
  void Refused(const std::shared_ptr<const KubePass>& pass) { login_->Refused(pass); }

  Loop& loop() { return loop_; }
  Resolver& resolver() { return resolver_; }
  Duration patience() const { return options_.patience; }
  // Where no namespace is named.
  const std::string& network_namespace() const { return network_namespace_; }
  const std::string& url() const { return url_; }

 private:
  KubeClient(Loop& loop, Resolver& resolver, const KubeAccess& access,
             std::unique_ptr<KubeLogin> login, KubeClientOptions options)
      : loop_(loop),
        resolver_(resolver),
        url_(access.server.ToString()),
        network_namespace_(access.network_namespace),
        login_(std::move(login)),
        options_(std::move(options)) {}

  struct ListProgress {
    std::string path;
    std::string next = {};  // what the next page is called; empty: this was the last
    size_t bytes = 0;       // of all pages so far
  };

  // The head of the answer has come.
  Task<Result<void>> Ask(KubeCall& call, std::string path, std::string_view query);
  // The status that came; the list has grown if that is 200.
  Task<Result<int>> ReadPage(ListProgress& progress, KubeList& list);
  static void TakeItems(const Json::Array& items, KubeList& list);
  Task<Result<size_t>> Relay(KubeCall& call, const Sink& sink);

  Loop& loop_;
  Resolver& resolver_;
  const std::string url_;
  const std::string network_namespace_;
  const std::unique_ptr<KubeLogin> login_;
  const KubeClientOptions options_;
};

}  // namespace fathom
