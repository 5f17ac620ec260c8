// A follower with a listener that writes down what it is told, on a loop of its own, for tests.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "io/kube/kube_follower.h"
#include "io/net/resolver.h"
#include "testing/becomes.h"
#include "testing/loop_thread.h"

namespace fathom {

// Keeps the picture that it is told, and a line for each call: "object a", "gone a", "listed",
// "trouble 403", "recovered".
class KubeRecorder final : public KubeListener {
 public:
  void OnObject(std::string_view name, const Json& object) override {
    std::string text;
    object.WriteTo(text);
    Note("object " + std::string(name));
    const std::lock_guard lock(mutex_);
    picture_[std::string(name)] = std::move(text);
  }
  void OnGone(std::string_view name) override {
    Note("gone " + std::string(name));
    const std::lock_guard lock(mutex_);
    picture_.erase(std::string(name));
  }
  void OnListed() override { Note("listed"); }
  void OnTrouble(const KubeTrouble& trouble) override {
    {
      const std::lock_guard lock(mutex_);
      words_ = trouble.what;
    }
    Note(fmt::format("trouble {}", trouble.status));
  }
  void OnRecovered() override { Note("recovered"); }

  // Called with each line, on the loop, before it can be seen.
  std::function<void(const std::string& line)> on_line;

  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  size_t Count(std::string_view line) const {
    const std::lock_guard lock(mutex_);
    return static_cast<size_t>(std::ranges::count(lines_, line));
  }
  bool WaitFor(std::string_view line, size_t times = 1) const {
    return Becomes([&] { return Count(line) >= times; });
  }
  std::map<std::string, std::string> picture() const {
    const std::lock_guard lock(mutex_);
    return picture_;
  }
  // Of the last trouble.
  std::string words() const {
    const std::lock_guard lock(mutex_);
    return words_;
  }

 private:
  void Note(std::string line) {
    if (on_line) on_line(line);
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
  }

  mutable std::mutex mutex_;  // guards all below
  std::vector<std::string> lines_;
  std::map<std::string, std::string> picture_;
  std::string words_;
};

constexpr KubeResource kTestSlices = {"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"};

// Pauses that do not make a test wait.
inline KubeFollowerOptions QuickOptions() {
  KubeFollowerOptions options;
  options.first_pause = std::chrono::milliseconds(2);
  options.longest_pause = std::chrono::milliseconds(8);
  options.settle = std::chrono::milliseconds(10);
  return options;
}

class KubeFollowRig {
 public:
  explicit KubeFollowRig(const std::string& url,
                         const KubeFollowerOptions& options = QuickOptions())
      : KubeFollowRig(AccessTo(url), {.resource = kTestSlices, .network_namespace = ""}, options) {}
  KubeFollowRig(const KubeAccess& access, const KubeQuery& query,
                const KubeFollowerOptions& options = QuickOptions()) {
    client_ = *KubeClient::Create(thread_.loop(), resolver_, access,
                                  {.patience = std::chrono::minutes(1)});
    follower_ = std::make_unique<KubeFollower>(thread_.loop(), *client_, query, recorder, options);
  }
  ~KubeFollowRig() {
    thread_.Call([this] { follower_.reset(); });
    thread_.Settle();
    thread_.Call([this] { client_.reset(); });
    thread_.Settle();
    thread_.Stop();
    resolver_.Stop();
  }

  void Start() {
    thread_.Call([this] { follower_->Start(); });
  }
  void Stop() {
    thread_.Call([this] { follower_->Stop(); });
  }
  // Inside of calls to the listener.
  KubeFollower& follower() { return *follower_; }
  // Everything that was about to happen on the loop has happened.
  void Settle() { thread_.Settle(); }

  static KubeAccess AccessTo(const std::string& url) {
    KubeAccess access;
    access.origin = "a test";
    access.server = *Url::Parse(url);
    access.network_namespace = "ml";
    return access;
  }

  KubeRecorder recorder;

 private:
  Resolver resolver_;
  LoopThread thread_;
  std::unique_ptr<KubeClient> client_;
  std::unique_ptr<KubeFollower> follower_;
};

}  // namespace fathom
