#include "router/gateway/peer_directory.h"

#include <algorithm>
#include <utility>

namespace fathom {
namespace {

bool FailedJustNow(const PeerRoute& peer, TimePoint now) {
  const int64_t at = peer.failed_at.load(std::memory_order_relaxed);
  return at != 0 && now - TimePoint(Duration(at)) < PeerDirectory::kAskLast;
}

}  // namespace

Result<PeerDirectory::Peer> PeerDirectory::MakePeer(const PeerReplica& told) const {
  Peer peer{.told = told, .slice = {}, .route = nullptr};
  TRY(peer.slice, ModelSlice::Of(told.models));
  if (told.url.empty()) return peer;
  TRY(const Url url, Url::Parse(told.url));
  auto route = std::make_shared<PeerRoute>();
  route->id = told.id;
  route->host_header = url.HostHeader();
  route->pool_key = WorkerId::OfUrl("replica " + url.ToString());
  route->endpoint.url = url;
  if (url.tls()) {
    TRY(route->endpoint.tls, TlsClientContext::Create(ca_file_));
  }
  peer.route = std::move(route);
  return peer;
}

Result<void> PeerDirectory::CheckUrl(std::string_view url) {
  TRY_VOID(Url::Parse(url));
  return {};
}

// A peer that has not changed keeps its route, and with it the time of its last failure. Only this
// function writes the list, so that files are read without the lock.
std::vector<Error> PeerDirectory::Set(std::vector<PeerReplica> peers) {
  if (peers.size() > kMost) peers.resize(kMost);
  std::vector<Peer> before;
  {
    const std::lock_guard lock(mutex_);
    before = peers_;
  }
  std::vector<Peer> next;
  std::vector<Error> errors;
  for (const PeerReplica& told : peers) {
    const auto known = std::ranges::find(before, told, &Peer::told);
    if (known != before.end()) {
      next.push_back(*known);
    } else if (auto made = MakePeer(told)) {
      next.push_back(*std::move(made));
    } else {
      errors.push_back(std::move(made).error().In("replica " + told.id));
    }
  }
  const std::lock_guard lock(mutex_);
  peers_ = std::move(next);
  return errors;
}

std::shared_ptr<const PeerRoute> PeerDirectory::Find(std::string_view model, TimePoint now,
                                                     const PeerRoute* but) const {
  const size_t turn = turn_.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const PeerRoute> last;  // drains, or has just failed
  for (size_t i = 0; i < peers_.size(); ++i) {
    const Peer& peer = peers_[(turn + i) % peers_.size()];
    if (peer.route == nullptr || peer.route.get() == but || !peer.slice.Contains(model)) continue;
    if (!peer.told.draining && !FailedJustNow(*peer.route, now)) return peer.route;
    if (last == nullptr) last = peer.route;
  }
  return last;
}

std::string PeerDirectory::WithoutUrl(std::string_view model) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(peers_, [&](const Peer& peer) {
    return peer.route == nullptr && peer.slice.Contains(model);
  });
  return found == peers_.end() ? "" : found->told.id;
}

}  // namespace fathom
