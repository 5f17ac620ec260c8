#include "router/sources/kube_claims.h"

#include <fmt/format.h>

#include <algorithm>

namespace fathom {
namespace {

const KubeSighting* FindFamily(const std::vector<const KubeSighting*>& seen, bool v6) {
  const auto found = std::ranges::find(seen, v6, &KubeSighting::v6);
  return found == seen.end() ? nullptr : *found;
}

}  // namespace

void KubeClaims::Set(const std::string& object, std::vector<KubeSighting> seen) {
  ByKey now;
  for (KubeSighting& sighting : seen) now[sighting.Key()].push_back(std::move(sighting));
  const auto known = objects_.find(object);
  const ByKey before = known == objects_.end() ? ByKey() : std::move(known->second);
  for (const auto& [key, _] : before) {
    if (!now.contains(key)) See(object, key, {});
  }
  cut_objects_.erase(object);
  for (auto at = now.begin(); at != now.end();) {
    const auto old = before.find(at->first);
    const size_t more = old == before.end() ? at->second.size() : 0;
    if (sightings_ + more > most_) {
      cut_objects_.insert(object);
      at = now.erase(at);
      continue;
    }
    if (old == before.end() || old->second != at->second) See(object, at->first, at->second);
    ++at;
  }
  if (now.empty()) {
    objects_.erase(object);
  } else {
    objects_[object] = std::move(now);
  }
}

void KubeClaims::See(const std::string& object, const std::string& key,
                     std::vector<KubeSighting> seen) {
  Endpoint& endpoint = endpoints_[key];
  for (const KubeSighting& sighting : seen) {
    if (sighting.pod.empty()) continue;
    if (endpoint.pod != sighting.pod) Forget(key, endpoint);
    endpoint.pod = sighting.pod;
    keys_of_pod_[sighting.pod].insert(key);
  }
  std::vector<KubeSighting>& slot = endpoint.seen[object];
  sightings_ += seen.size();
  sightings_ -= slot.size();
  slot = std::move(seen);
  if (slot.empty()) endpoint.seen.erase(object);
  changed_.insert(key);
}

bool KubeClaims::SetPod(PodLook pod) {
  const std::string name = pod.name;
  const auto known = pods_.find(name);
  if (known == pods_.end() && pods_.size() >= most_) {
    unread_pods_.insert(name);
    return false;
  }
  unread_pods_.erase(name);
  if (known == pods_.end()) {
    pods_.emplace(name, std::move(pod));
  } else {
    known->second = std::move(pod);
  }
  if (const auto keys = keys_of_pod_.find(name); keys != keys_of_pod_.end()) {
    changed_.insert(keys->second.begin(), keys->second.end());
  }
  return true;
}

void KubeClaims::RemovePod(const std::string& name) {
  pods_.erase(name);
  unread_pods_.erase(name);
}

std::string KubeClaims::problem() const {
  if (!refused_.empty()) return refused_.begin()->second;
  if (!cut_objects_.empty()) {
    return fmt::format("more than {} endpoints; the rest are not used", most_);
  }
  if (!unread_pods_.empty()) {
    return fmt::format("more than {} pods; what the rest say is not known", most_);
  }
  return "";
}

std::optional<TimePoint> KubeClaims::Apply(TimePoint now, bool blind) {
  if (std::exchange(blind_, blind) && !blind) WaitAgain(now);
  while (!blind_ && !decisions_.empty() && decisions_.begin()->first <= now) {
    changed_.insert(std::move(decisions_.begin()->second));
    decisions_.erase(decisions_.begin());
  }
  for (const std::string& key : std::exchange(changed_, {})) Settle(key, now);
  RetryRefused(now);
  for (const std::string& url : std::exchange(changed_places_, {})) Write(url, now);
  if (!blind_) DropLeft(now);
  if (refused_.empty()) {
    retry_.reset();
  } else if (!retry_) {
    retry_ = now + kRefusalRetry;
  }
  std::optional<TimePoint> next = retry_;
  if (blind_) return next;
  const auto by = [&](TimePoint time) { next = std::min(next.value_or(time), time); };
  if (!decisions_.empty()) by(decisions_.begin()->first);
  if (!leaving_.empty()) by(leaving_.begin()->first);
  return next;
}

void KubeClaims::RetryRefused(TimePoint now) {
  if (!retry_ || now < *retry_) return;
  retry_.reset();
  for (const auto& [url, _] : refused_) changed_places_.insert(url);
}

// What brings an endpoint back, or its other address, may have happened while it could not be seen.
void KubeClaims::WaitAgain(TimePoint now) {
  for (const auto& [_, url] : std::exchange(leaving_, {})) {
    places_.at(url).leaves = now + kLinger;
    leaving_.emplace(now + kLinger, url);
  }
  for (auto& [_, key] : std::exchange(decisions_, {})) {
    const auto endpoint = endpoints_.find(key);
    if (endpoint == endpoints_.end() || !endpoint->second.decides) continue;
    endpoint->second.decides = now + kLinger;
    decisions_.emplace(now + kLinger, key);
  }
}

void KubeClaims::Settle(const std::string& key, TimePoint now) {
  const auto found = endpoints_.find(key);
  if (found == endpoints_.end()) return;
  Endpoint& endpoint = found->second;
  if (endpoint.seen.empty()) {
    Detach(key, endpoint);
    Forget(key, endpoint);
    endpoints_.erase(found);
    return;
  }
  if (!ChooseAddress(key, endpoint, now)) return;
  endpoint.now.says = SourceSays::kServe;
  for (const auto& [_, sightings] : endpoint.seen) {
    for (const KubeSighting& seen : sightings) {
      endpoint.now.says = std::max(endpoint.now.says, seen.says);
    }
  }
  Listen(endpoint);
  const std::string url = entry_.UrlOf(endpoint.now);
  if (url != endpoint.url) {
    Detach(key, endpoint);
    endpoint.url = url;
    places_[url].keys.insert(key);
  }
  changed_places_.insert(url);
}

bool KubeClaims::ChooseAddress(const std::string& key, Endpoint& endpoint, TimePoint now) {
  std::vector<const KubeSighting*> all;
  for (const auto& [_, sightings] : endpoint.seen) {
    for (const KubeSighting& seen : sightings) all.push_back(&seen);
  }
  const KubeSighting* const v4 = FindFamily(all, false);
  const KubeSighting* const v6 = FindFamily(all, true);
  if (v4 != nullptr && v6 != nullptr) dual_stack_ = true;
  const bool is_new = endpoint.now.host.empty();
  const auto same = std::ranges::find(all, endpoint.now.host, &KubeSighting::host);
  const bool wants_v6 = is_new ? v6_.value_or(false) : endpoint.now.v6();
  const KubeSighting* chosen = same != all.end() ? *same : (wants_v6 ? v6 : v4);
  if (chosen != nullptr) {
    endpoint.decides.reset();
  } else {
    chosen = all.front();
    const bool waits = !is_new || (dual_stack_ && v6_);
    if (waits && !endpoint.decides) {
      endpoint.decides = now + (is_new ? kOtherFamily : kLinger);
      decisions_.emplace(*endpoint.decides, key);
    }
    if (waits && (blind_ || now < *endpoint.decides)) {
      if (is_new) return false;
      const std::string host = endpoint.now.host;
      endpoint.now = *chosen;
      endpoint.now.host = host;
      return true;
    }
    endpoint.decides.reset();
  }
  endpoint.now = *chosen;
  if (!v6_) v6_ = chosen->v6();
  return true;
}

// What its pod says. The pod may be of the same name and yet another one.
void KubeClaims::Listen(Endpoint& endpoint) const {
  const auto pod = pods_.find(endpoint.now.pod);
  const bool known = pod != pods_.end() && (endpoint.now.uid.empty() || pod->second.uid.empty() ||
                                            endpoint.now.uid == pod->second.uid);
  if (known) {
    endpoint.facts = pod->second.facts;
    endpoint.pod_ends = pod->second.says == SourceSays::kDrain;
  }
  if (endpoint.pod_ends) endpoint.now.says = SourceSays::kDrain;
}

void KubeClaims::Detach(const std::string& key, Endpoint& endpoint) {
  if (endpoint.url.empty()) return;
  places_.at(endpoint.url).keys.erase(key);
  changed_places_.insert(std::exchange(endpoint.url, {}));
}

void KubeClaims::Forget(const std::string& key, const Endpoint& endpoint) {
  const auto keys = keys_of_pod_.find(endpoint.pod);
  if (keys == keys_of_pod_.end()) return;
  keys->second.erase(key);
  if (keys->second.empty()) keys_of_pod_.erase(keys);
}

void KubeClaims::Write(const std::string& url, TimePoint now) {
  const auto found = places_.find(url);
  if (found == places_.end()) return;
  Place& place = found->second;
  if (place.keys.empty()) {
    Linger(url, place, now);
    return;
  }
  if (place.leaves) {
    leaving_.erase({*place.leaves, url});
    place.leaves.reset();
  }
  // Of two pods at one address the one that serves is there.
  const Endpoint* best = nullptr;
  for (const std::string& key : place.keys) {
    const Endpoint& endpoint = endpoints_.at(key);
    const bool better = best == nullptr || endpoint.now.says < best->now.says ||
                        (endpoint.now.says == best->now.says && endpoint.now.uid == place.uid);
    if (better) best = &endpoint;
  }
  const std::string& uid = best->now.uid;
  if (!place.uid.empty() && !uid.empty() && uid != place.uid) {
    source_.Drop(WorkerId::OfUrl(url), "another pod is at its address");
  }
  if (!uid.empty()) place.uid = uid;
  place.claim = entry_.For(best->now, best->facts.get());
  Put(place.claim);
}

void KubeClaims::Linger(const std::string& url, Place& place, TimePoint now) {
  if (place.leaves) return;
  place.leaves = now + kLinger;
  leaving_.emplace(*place.leaves, url);
  if (place.claim.says == SourceSays::kDrain) return;
  place.claim.says = SourceSays::kDrain;
  place.claim.because = "no longer an endpoint in Kubernetes";
  Put(place.claim);
}

void KubeClaims::DropLeft(TimePoint now) {
  while (!leaving_.empty() && leaving_.begin()->first <= now) {
    const std::string url = leaving_.begin()->second;
    leaving_.erase(leaving_.begin());
    places_.erase(url);
    refused_.erase(url);
    source_.Drop(WorkerId::OfUrl(url), "no longer an endpoint in Kubernetes");
  }
}

void KubeClaims::Put(const Claim& claim) {
  const auto put = source_.Put(claim);
  if (put) {
    refused_.erase(claim.entry.url);
  } else {
    refused_[claim.entry.url] = fmt::format("{}: {}", claim.entry.url, put.error().what);
  }
}

}  // namespace fathom
