// Which endpoints of Kubernetes are workers now, and what is claimed of each?
//
// Objects (EndpointSlices, Pods) say which endpoints they see. An endpoint that several objects see
// is one worker, and so is a pod with an address of each family: it keeps the address that it has.
//
// An endpoint that no object sees any more drains for kLinger, and leaves then. Endpoints move
// between slices, and the event that takes one away may come before the one that brings it: without
// the pause each move would cost a worker its index. While the source cannot be read, no worker
// leaves.
//
// Another pod at the same address is another engine: the old worker leaves, the new one joins.
//
// Cost     A change of an object costs the size of that object, however many there are.
// Memory   At most kMost sightings and as many pods; more are passed over, and said for as long as
//          they are there and have not been told again: of each object only its name is kept.
// Threads  One.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "router/sources/kube_entry.h"
#include "router/sources/kube_sighting.h"
#include "router/sources/muster.h"
#include "router/sources/pod_look.h"

namespace fathom {

class KubeClaims {
 public:
  static constexpr Duration kLinger = std::chrono::seconds(5);
  // How long a new endpoint of a dual-stack source may take to show its address of the usual
  // family.
  static constexpr Duration kOtherFamily = std::chrono::seconds(1);
  // What an entry names may be missing for a while: a file that is not mounted yet.
  static constexpr Duration kRefusalRetry = std::chrono::seconds(10);
  static constexpr size_t kMost = 4 * Fleet::kMaxWorkers;

  // A test may want less room.
  KubeClaims(Muster::Source& source, KubeEntry entry, size_t most = kMost)
      : source_(source), entry_(std::move(entry)), most_(most) {}

  // What an object sees now, in place of what it saw before. No sightings: it is gone.
  void Set(const std::string& object, std::vector<KubeSighting> seen);
  // What is known of a pod. Once it is gone, what it said still holds for its endpoints.
  // False: there is no room for it.
  bool SetPod(PodLook pod);
  void RemovePod(const std::string& name);

  // Claims what has changed. `blind`: the source cannot be read. Returns when to call again.
  std::optional<TimePoint> Apply(TimePoint now, bool blind);

  // Nothing is claimed, and nothing waits to be.
  bool empty() const { return endpoints_.empty() && places_.empty(); }
  // How many pods its endpoints name.
  size_t named_pods() const { return keys_of_pod_.size(); }
  // What could not be claimed; empty: nothing.
  std::string problem() const;

 private:
  using ByKey = std::map<std::string, std::vector<KubeSighting>>;

  struct Endpoint {
    std::map<std::string, std::vector<KubeSighting>> seen;  // by object
    KubeSighting now;                                       // host empty: not chosen yet
    std::string pod;
    std::string url;                   // empty: not claimed
    std::optional<TimePoint> decides;  // waits for the family it had
    std::shared_ptr<const PodFacts> facts;
    bool pod_ends = false;
  };
  struct Place {
    std::set<std::string> keys;  // of endpoints that are there; empty: it leaves
    std::string uid;             // of the pod that is claimed
    Claim claim;
    std::optional<TimePoint> leaves;
  };

  void See(const std::string& object, const std::string& key, std::vector<KubeSighting> seen);
  void Settle(const std::string& key, TimePoint now);
  // False: it waits.
  bool ChooseAddress(const std::string& key, Endpoint& endpoint, TimePoint now);
  void Listen(Endpoint& endpoint) const;
  void Detach(const std::string& key, Endpoint& endpoint);
  void Forget(const std::string& key, const Endpoint& endpoint);
  void Write(const std::string& url, TimePoint now);
  void Linger(const std::string& url, Place& place, TimePoint now);
  void DropLeft(TimePoint now);
  void WaitAgain(TimePoint now);
  void RetryRefused(TimePoint now);
  void Put(const Claim& claim);

  Muster::Source& source_;
  const KubeEntry entry_;
  const size_t most_;
  std::unordered_map<std::string, ByKey> objects_;
  std::unordered_map<std::string, Endpoint> endpoints_;  // by KubeSighting::Key()
  std::unordered_map<std::string, Place> places_;        // by URL
  std::unordered_map<std::string, PodLook> pods_;
  std::unordered_map<std::string, std::set<std::string>> keys_of_pod_;
  std::set<std::string> changed_;                        // keys
  std::set<std::string> changed_places_;                 // URLs
  std::multimap<TimePoint, std::string> decisions_;      // keys
  std::set<std::pair<TimePoint, std::string>> leaving_;  // URLs
  size_t sightings_ = 0;
  std::optional<bool> v6_;   // the family of the first address that was chosen
  bool dual_stack_ = false;  // an endpoint had addresses of both
  bool blind_ = false;
  std::set<std::string> cut_objects_;           // there was no room for all that they see
  std::set<std::string> unread_pods_;           // there was no room for them
  std::map<std::string, std::string> refused_;  // by URL
  std::optional<TimePoint> retry_;              // of those that were refused
};

}  // namespace fathom
