#include "router/sources/pod_watch.h"

#include <utility>

namespace fathom {

void PodWatch::Follow(const std::string& selector) {
  if (selector_ == selector) return;
  selector_ = selector;
  changed_ = true;
  seen_.clear();
  KubeCalls calls{
      .object = [this](std::string_view name, const Json& object) { OnPod(name, object); },
      .gone = [this](std::string_view name) { OnGone(name); },
      .listed = [this] { OnListed(); },
      .trouble = calls_.trouble,
      .recovered = calls_.recovered};
  constexpr KubeResource kPod = {"", "v1", "pods", "Pod"};
  stream_ = std::make_unique<KubeStream>(
      loop_, client_,
      KubeQuery{.resource = kPod, .network_namespace = namespace_, .label_selector = selector},
      std::move(calls), options_);
  stream_->Start();
}

void PodWatch::Forget() {
  stream_ = nullptr;
  selector_.reset();
  for (const std::string& name : std::exchange(known_, {})) calls_.gone(name);
  calls_.recovered();
}

void PodWatch::OnPod(std::string_view name, const Json& object) {
  known_.emplace(name);
  if (changed_) seen_.emplace(name);
  calls_.pod(PodLook::Of(name, object));
}

void PodWatch::OnGone(std::string_view name) {
  if (const auto found = known_.find(name); found != known_.end()) known_.erase(found);
  calls_.gone(std::string(name));
}

void PodWatch::OnListed() {
  if (std::exchange(changed_, false)) {
    const auto before = std::exchange(known_, std::exchange(seen_, {}));
    for (const std::string& name : before) {
      if (!known_.contains(name)) calls_.gone(name);
    }
  }
  calls_.recovered();  // the follower that was in trouble may have been another one
  calls_.listed();
}

}  // namespace fathom
