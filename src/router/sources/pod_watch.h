// Which pods match a label selector that may change?
//
// With a new selector the pods of the old one stay until the first list of the new one is complete;
// only then are those gone that it does not have.
//
// Threads  On the loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "router/sources/kube_stream.h"
#include "router/sources/pod_look.h"

namespace fathom {

class PodWatch {
 public:
  struct Calls {
    std::function<void(PodLook pod)> pod;
    std::function<void(const std::string& name)> gone;
    std::function<void()> listed;
    std::function<void(const KubeTrouble&)> trouble;
    std::function<void()> recovered;  // or there was no trouble
  };

  PodWatch(Loop& loop, KubeClient& client, std::string network_namespace, Calls calls,
           const KubeFollowerOptions& options = {})
      : loop_(loop),
        client_(client),
        namespace_(std::move(network_namespace)),
        calls_(std::move(calls)),
        options_(options) {}

  // Not inside of its own calls. An empty selector: all pods of the namespace.
  void Follow(const std::string& selector);
  // All pods are gone.
  void Forget();
  bool follows() const { return selector_.has_value(); }
  // The list of the present selector is complete.
  bool listed() const { return selector_ && !changed_; }

 private:
  void OnPod(std::string_view name, const Json& object);
  void OnGone(std::string_view name);
  void OnListed();

  Loop& loop_;
  KubeClient& client_;
  const std::string namespace_;
  const Calls calls_;
  const KubeFollowerOptions options_;
  std::optional<std::string> selector_;
  std::unique_ptr<KubeStream> stream_;
  std::set<std::string, std::less<>> known_;
  std::set<std::string, std::less<>> seen_;  // since the selector changed
  bool changed_ = false;                     // the first list of this selector is not complete
};

}  // namespace fathom
