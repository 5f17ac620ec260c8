#include "router/replicas/zmtp_mesh.h"

#include <algorithm>
#include <iterator>
#include <list>
#include <map>
#include <set>
#include <utility>

#include "base/repeat_limit.h"
#include "base/secret.h"
#include "io/net/address_range.h"
#include "io/net/wakeable_wait.h"
#include "io/zmtp/zmtp_listener.h"
#include "router/replicas/kube_peers.h"
#include "router/replicas/mesh_link.h"

namespace fathom {
namespace {

constexpr Duration kMeshWatch = std::chrono::seconds(1);

std::string_view NameOfRefusal(ZmtpRefusal why) {
  switch (why) {
    case ZmtpRefusal::kAddress:
      return "address not allowed";
    case ZmtpRefusal::kKey:
      return "wrong key";
    case ZmtpRefusal::kPeers:
      return "too many connections";
    case ZmtpRefusal::kProtocol:
    case ZmtpRefusal::kLimit:
      break;
  }
  return "";
}

}  // namespace

// Shared by the mesh and by what runs on the loop.
class ZmtpMesh::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(Loop& loop, Resolver& resolver, Log& log, ZmtpMeshOptions options)
      : loop_(loop),
        resolver_(resolver),
        log_(log),
        options_(std::move(options)),
        self_{options_.id, fmt::format("{:016x}", RandomSecret())} {}

  Result<void> Listen() {
    TRY_VOID(SplitHostPort(options_.listen));
    const std::string_view any = options_.listen.starts_with(':') ? "*" : "";
    auto listener =
        ZmtpListener::Bind(loop_, budget_, fmt::format("tcp://{}{}", any, options_.listen),
                           {.most_peers = kMostIncoming,
                            .known = [this](const Address& from) { return Known(from); },
                            .most_strangers = kMostStrangers,
                            .limits = {.frames = 1, .message = kLongestMessage},
                            .properties = self_.Properties()},
                           log_);
    if (!listener) return std::unexpected(std::move(listener).error().In(options_.listen));
    listener_ = *std::move(listener);
    return {};
  }
  Address address() const { return listener_->address(); }

  void Start(OnMessage on_message) {
    on_message_ = std::move(on_message);
    Spawn(Accept(shared_from_this()));
    for (const MeshPlace& place : options_.replicas.places) {
      if (place.finding == MeshFinding::kListed) {
        listed_.insert(place.ToString());
      } else {
        names_.push_back({.place = place});
      }
    }
    SetLinks();
    for (Name& name : names_) {
      if (name.place.finding == MeshFinding::kDns) {
        Spawn(Follow(shared_from_this(), name));
      } else {
        FollowService(name);
      }
    }
    Spawn(Watch(shared_from_this()));
  }

  void Stop() {
    if (std::exchange(stopped_, true)) return;
    listener_->Stop();
    for (const auto& [place, link] : links_) link->way->Stop();
    for (WakeableWait* const pause : pauses_) pause->Wake();
    services_.clear();
  }

  bool Publish(std::string_view message) {
    if (message.size() > kLongestMessage) return false;
    const auto bytes = std::make_shared<const std::string>(message);
    bool sent = false;
    for (const auto& [place, link] : links_) sent |= link->way->Push(bytes);
    return sent;
  }

  // A replica may be listed twice; it passes over the second copy.
  bool Send(std::string_view replica, std::string_view message) {
    if (message.size() > kLongestMessage) return false;
    const auto bytes = std::make_shared<const std::string>(message);
    bool known = false;
    bool sent = false;
    for (const auto& [place, link] : links_) {
      if (!link->way->connected() || link->way->peer() != replica) continue;
      known = true;
      sent |= link->way->PushBulk(bytes);
    }
    if (known) return sent;
    for (const auto& [place, link] : links_) sent |= link->way->PushBulk(bytes);
    return sent;
  }

  Status status() const {
    Status status{.dropped = gone_dropped_, .sent_bytes = gone_sent_bytes_};
    status.received_bytes = received_bytes_;
    size_t others = 0;
    size_t reached = 0;
    for (const auto& [place, link] : links_) {
      status.dropped += link->way->dropped();
      status.sent_bytes += link->way->sent_bytes();
      if (link->way->loops_back()) continue;
      ++others;
      if (link->way->connected()) {
        ++reached;
      } else {
        AddProblem(place, link->way->problem(), status.problem);
      }
    }
    for (const Name& name : names_) AddProblem(name.place.ToString(), name.problem, status.problem);
    status.up = reached > 0 || (others == 0 && status.problem.empty());
    // Whom we reach will find us, too: it looks up the names as well.
    status.awaits = reached > 0;
    return status;
  }

 private:
  struct Name {
    MeshPlace place;
    std::set<std::string> addresses = {};  // its last answer
    std::string problem = "not looked up yet";
    bool logged = false;  // the problem
  };
  struct Link {
    std::shared_ptr<MeshLink> way;
    bool logged = false;  // that it is not reached
  };

  // A few lines at most; there may be many links.
  static void AddProblem(std::string_view place, std::string_view problem, std::string& to) {
    constexpr size_t kLongestProblem = 400;
    if (problem.empty() || to.size() > kLongestProblem) return;
    if (!to.empty()) to += "; ";
    fmt::format_to(std::back_inserter(to), "{}: {}", place, problem);
  }

  bool Known(const Address& from) const {
    const AddressRange range = AddressRange::Of(from);
    return std::ranges::any_of(links_, [&](const auto& entry) {
      return std::ranges::any_of(entry.second->way->addresses(),
                                 [&](const Address& at) { return range.Contains(at); });
    });
  }

  // --- in ---

  static Task<void> Accept(std::shared_ptr<Core> core) {
    auto running =
        core->listener_->Run([&core = *core](ZmtpConnection& peer) { return core.Serve(peer); },
                             [&core = *core](ZmtpRefusal why, const Address& from,
                                             ZmtpFault fault) { core.Refused(why, from, fault); });
    co_await running;
  }

  Task<void> Serve(ZmtpConnection& peer) {
    for (;;) {
      auto receiving = peer.Receive(loop_.now() + options_.most_silence);
      const ZmtpNews news = co_await receiving;
      if (news != ZmtpNews::kMessage || stopped_) break;
      const std::string& bytes = peer.message()[0];
      received_bytes_ += bytes.size();
      on_message_(bytes);
    }
  }

  void Refused(ZmtpRefusal why, const Address& from, ZmtpFault fault) {
    const auto suppressed = refusals_.Next(loop_.now());
    if (!suppressed) return;
    const std::string_view name = NameOfRefusal(why);
    log_.Warn("Connection to the replicas' port was refused",
              {{"from", from.ToString()},
               {"reason", name.empty() ? Describe(fault) : name},
               {"suppressed", *suppressed}});
  }

  // --- out ---

  // One link for each place that is listed, or that a name has now.
  void SetLinks() {
    if (stopped_) return;
    std::set<std::string> wanted = listed_;
    for (const Name& name : names_) wanted.insert(name.addresses.begin(), name.addresses.end());
    for (auto it = links_.begin(); it != links_.end();) {
      it = wanted.contains(it->first) ? std::next(it) : Remove(it);
    }
    for (const std::string& place : wanted) {
      if (links_.size() < kMostLinks && !links_.contains(place)) Add(place);
    }
    const bool cut = wanted.size() > kMostLinks;
    if (cut && !std::exchange(said_cut_, true)) {
      log_.Warn("More addresses of replicas are known than this router connects to",
                {{"addresses", wanted.size()}, {"most", kMostLinks}});
    }
    said_cut_ = cut;
  }

  using Links = std::map<std::string, std::unique_ptr<Link>>;

  void Add(const std::string& place) {
    const auto split = SplitHostPort(place);
    if (!split) return;
    auto way =
        std::make_shared<MeshLink>(loop_, resolver_, budget_, self_, split->first, split->second);
    links_.emplace(place, std::make_unique<Link>(Link{way}));
    Spawn(RunLink(shared_from_this(), std::move(way)));
  }

  // The core has the memory that the link's connection counts with.
  static Task<void> RunLink(std::shared_ptr<Core> core, std::shared_ptr<MeshLink> way) {
    auto running = MeshLink::Run(std::move(way));
    co_await running;
    core.reset();
  }

  Links::iterator Remove(Links::iterator it) {
    const MeshLink& way = *it->second->way;
    gone_dropped_ += way.dropped();
    gone_sent_bytes_ += way.sent_bytes();
    it->second->way->Stop();
    return links_.erase(it);
  }

  static Task<void> Follow(std::shared_ptr<Core> core, Name& name) {
    while (!core->stopped_) {
      auto asking = core->resolver_.Ask(core->loop_, name.place.host, name.place.port);
      const NetResult<NameAnswer> answer = co_await asking;
      if (core->stopped_) break;
      core->Answered(name, answer);
      auto pausing = core->Pause(core->options_.lookup_every);
      co_await pausing;
    }
  }

  void Answered(Name& name, const NetResult<NameAnswer>& answer) {
    if (!answer) return Failed(name, answer.error().what);
    std::set<std::string> addresses;
    for (const Address& address : answer->addresses) addresses.insert(address.ToString());
    if (!answer->complete) KeepFamilyThatFailed(name.addresses, addresses);
    Found(name, std::move(addresses));
  }

  // Of the family that was answered, the answer is all there is.
  static void KeepFamilyThatFailed(const std::set<std::string>& known,
                                   std::set<std::string>& addresses) {
    const auto is_v6 = [](const std::string& address) { return address.starts_with('['); };
    const bool has_v6 = std::ranges::any_of(addresses, is_v6);
    const bool has_v4 = !std::ranges::all_of(addresses, is_v6);
    for (const std::string& address : known) {
      if (is_v6(address) ? !has_v6 : !has_v4) addresses.insert(address);
    }
  }

  void FollowService(Name& name) {
    const MeshPlace& place = name.place;
    services_.push_back(std::make_unique<KubePeers>(
        loop_, *options_.kube, place.network_namespace, place.host, place.port,
        [this, &name](std::set<std::string> found) { Found(name, std::move(found)); },
        [this, &name](const std::string& problem) { Failed(name, problem); }));
    services_.back()->Start();
  }

  void Failed(Name& name, const std::string& problem) {
    name.problem = problem;
    if (std::exchange(name.logged, true)) return;
    log_.Warn("Lookup of the replicas failed; keeping those that are known",
              {{"name", name.place.ToString()}, {"problem", problem}});
  }

  void Found(Name& name, std::set<std::string> addresses) {
    name.problem.clear();
    if (std::exchange(name.logged, false)) {
      log_.Info("Lookup of the replicas works again", {{"name", name.place.ToString()}});
    }
    name.addresses = std::move(addresses);
    SetLinks();
  }

  // Logs which replicas are not reached, and when they are again.
  static Task<void> Watch(std::shared_ptr<Core> core) {
    while (!core->stopped_) {
      auto pausing = core->Pause(kMeshWatch);
      co_await pausing;
      if (core->stopped_) break;
      for (const auto& [place, link] : core->links_) core->LogChange(place, *link);
    }
  }

  void LogChange(const std::string& place, Link& link) {
    const bool reached = link.way->connected();
    if (reached && std::exchange(link.logged, false)) {
      log_.Info("Replica is reached again", {{"replica", link.way->peer()}, {"address", place}});
    }
    const bool lasting = loop_.now() - link.way->changed() >= options_.patience;
    if (!reached && lasting && !std::exchange(link.logged, true)) {
      log_.Warn(
          "Replica is not reached; its state and ours are not exchanged until it is",
          {{"replica", link.way->peer()}, {"address", place}, {"problem", link.way->problem()}});
    }
  }

  Task<void> Pause(Duration time) {
    WakeableWait wait(loop_, loop_.now() + time);
    pauses_.push_back(&wait);
    co_await wait;
    std::erase(pauses_, &wait);
  }

  Loop& loop_;
  Resolver& resolver_;
  Log& log_;
  const ZmtpMeshOptions options_;
  const MeshIdentity self_;
  ByteBudget budget_{kMostReceiving};
  std::unique_ptr<ZmtpListener> listener_;
  OnMessage on_message_;
  std::set<std::string> listed_;
  std::list<Name> names_;  // of DNS and Kubernetes
  std::vector<std::unique_ptr<KubePeers>> services_;
  Links links_;  // by place
  std::vector<WakeableWait*> pauses_;
  RepeatLimit refusals_;
  uint64_t received_bytes_ = 0;
  uint64_t gone_dropped_ = 0;  // of links that were removed
  uint64_t gone_sent_bytes_ = 0;
  bool said_cut_ = false;  // there are more addresses than links
  bool stopped_ = false;
};

Result<std::unique_ptr<ZmtpMesh>> ZmtpMesh::Create(Loop& loop, Resolver& resolver, Log& log,
                                                   ZmtpMeshOptions options) {
  for (const MeshPlace& place : options.replicas.places) {
    if (place.finding == MeshFinding::kKubernetes && options.kube == nullptr) {
      return Fail(Blame::kCaller, "k8s+zmq://{} needs access to the Kubernetes API",
                  place.ToString());
    }
  }
  auto core = std::make_shared<Core>(loop, resolver, log, std::move(options));
  TRY_VOID(core->Listen());
  return std::unique_ptr<ZmtpMesh>(new ZmtpMesh(std::move(core)));
}

ZmtpMesh::~ZmtpMesh() { core_->Stop(); }
void ZmtpMesh::Start(OnMessage on_message) { core_->Start(std::move(on_message)); }
void ZmtpMesh::Stop() { core_->Stop(); }
bool ZmtpMesh::Publish(std::string_view message) { return core_->Publish(message); }
bool ZmtpMesh::Send(std::string_view replica, std::string_view message) {
  return core_->Send(replica, message);
}
Carrier::Status ZmtpMesh::status() const { return core_->status(); }
Address ZmtpMesh::address() const { return core_->address(); }

}  // namespace fathom
