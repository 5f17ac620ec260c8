// A KubeFollower with its listener: what happens is handed to functions.
#pragma once

#include <functional>
#include <string_view>
#include <utility>

#include "io/kube/kube_follower.h"

namespace fathom {

// Every function must be set. Called on the loop.
struct KubeCalls {
  std::function<void(std::string_view name, const Json& object)> object;
  std::function<void(std::string_view name)> gone;
  std::function<void()> listed;
  std::function<void(const KubeTrouble&)> trouble;
  std::function<void()> recovered;
};

class KubeStream final : private KubeListener {
 public:
  KubeStream(Loop& loop, KubeClient& client, KubeQuery query, KubeCalls calls,
             const KubeFollowerOptions& options = {})
      : calls_(std::move(calls)), follower_(loop, client, std::move(query), *this, options) {}

  void Start() { follower_.Start(); }

 private:
  void OnObject(std::string_view name, const Json& object) override { calls_.object(name, object); }
  void OnGone(std::string_view name) override { calls_.gone(name); }
  void OnListed() override { calls_.listed(); }
  void OnTrouble(const KubeTrouble& trouble) override { calls_.trouble(trouble); }
  void OnRecovered() override { calls_.recovered(); }

  const KubeCalls calls_;
  KubeFollower follower_;
};

}  // namespace fathom
