// Which objects of one kind are in a namespace now, and what changes?
//
//   KubeFollower slices(loop, client, {.resource = kEndpointSlices, .network_namespace = "ml",
//                                      .label_selector = "kubernetes.io/service-name=vllm"},
//                       listener);
//   slices.Start();
//
// Lists page by page, then watches from the list's version. A watch that ends is taken up again
// from the last version that it told, without a list. Where the server no longer has that version
// (410, as a status or as an event), the list is read again and compared with what is known: only
// what differs is told, and nothing that is in both is ever told gone. An API server that is away
// changes nothing; it is asked again after a pause that grows.
//
// Whole objects are compared, but for metadata.resourceVersion, metadata.managedFields and the
// kind, which lists leave out. An object of the same name with another uid is one OnObject: its
// content has changed. It is told gone and new again only if a watch has shown both.
//
// Threads    Start(), Stop(), the destructor and all calls to the listener: on the loop. The
//            listener may call Stop() or destroy the follower inside any of them.
// Memory     Per object its name and a hash (kube_picture.h); one page of at most kMaxPage bytes,
//            or one event of at most kMaxEvent.
// Stalls     Objects are parsed one by one, and the loop has its turn between them.
// Staleness  A dead connection is noticed within about a minute (the kernel's probes), a server
//            that is alive but silent after the watch's time and a grace.
// Lifetime   The client outlives the follower, and the loop's turns that follow Stop().
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "codec/json.h"
#include "io/kube/kube_client.h"
#include "io/kube/kube_resource.h"
#include "io/kube/kube_trouble.h"

namespace fathom {

struct KubeQuery {
  KubeResource resource;
  std::string network_namespace;  // empty: that of the client's access
  std::string label_selector = {};
  std::string field_selector = {};
};

struct KubeFollowerOptions {
  size_t page = 500;  // objects of one page
  // How long one watch is asked to last: by chance between the two, so that the followers of many
  // processes do not come back at once.
  Duration shortest_watch = std::chrono::seconds(300);
  Duration longest_watch = std::chrono::seconds(600);
  // How much longer it may take to end before the server counts as silent.
  Duration grace = std::chrono::seconds(30);
  // Between attempts, doubled from one to the next, by chance between half and the whole of it.
  Duration first_pause = std::chrono::seconds(1);
  Duration longest_pause = std::chrono::seconds(30);
  // A server's own wish (Retry-After) is followed up to this.
  Duration longest_retry_after = std::chrono::seconds(60);
  // A watch that is open for this long, or has told something new, works: the outage is over.
  Duration settle = std::chrono::seconds(1);
  // After an outage of this length the list is read again: where the cluster's store was restored
  // from a backup, a watch from a version of its future is silent for ever.
  Duration relist_after = std::chrono::seconds(60);
};

// Called on the loop.
class KubeListener {
 public:
  // New, or its content differs from what was told before.
  virtual void OnObject(std::string_view name, const Json& object) = 0;
  virtual void OnGone(std::string_view name) = 0;
  // A complete list has been applied; the first time: the picture is whole.
  virtual void OnListed() = 0;
  // Once when an outage begins, and when its cause changes: refused credentials, a missing right,
  // an unknown resource, nonsense; everything else is a server that is away.
  virtual void OnTrouble(const KubeTrouble& trouble) = 0;
  virtual void OnRecovered() = 0;

 protected:
  ~KubeListener() = default;
};

class KubeFollower {
 public:
  static constexpr size_t kMaxPage = size_t{64} << 20;
  static constexpr size_t kMaxEvent = size_t{8} << 20;

  KubeFollower(Loop& loop, KubeClient& client, KubeQuery query, KubeListener& listener,
               KubeFollowerOptions options = {});
  ~KubeFollower();
  KubeFollower(const KubeFollower&) = delete;
  KubeFollower& operator=(const KubeFollower&) = delete;

  void Start();  // once
  // The listener is not called any more, even if a call to it is in progress.
  void Stop();

 private:
  class Run;

  std::shared_ptr<Run> run_;
};

}  // namespace fathom
