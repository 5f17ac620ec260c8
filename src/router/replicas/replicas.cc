#include "router/replicas/replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <utility>

#include "base/secret.h"
#include "base/version.h"
#include "router/replicas/nats_carrier.h"
#include "router/replicas/zmtp_mesh.h"

namespace fathom {
namespace {

constexpr Duration kViewEvery = std::chrono::milliseconds(250);
// For the goodbye to leave.
constexpr Duration kPatienceAtGoodbye = std::chrono::milliseconds(100);

std::unique_ptr<const MessageSeal> SealOf(const ReplicasOptions& options) {
  return options.key.empty() ? nullptr : std::make_unique<const MessageSeal>(options.key);
}

}  // namespace

uint64_t ReplicaSecret(const ReplicasOptions& options, std::string_view purpose) {
  // Without a key there is no secret: everybody of the group must compute the same.
  const MessageSeal seal(options.key.empty() ? "open " + options.group : options.key);
  return seal.Derive(fmt::format("{} of {}", purpose, options.group));
}

Result<std::unique_ptr<Replicas>> Replicas::Create(ReplicasOptions options, const World& world,
                                                   Resolver& resolver, Log& log) {
  std::unique_ptr<Replicas> replicas(new Replicas(std::move(options), world, log));
  TRY(replicas->carrier_, replicas->MakeCarrier(resolver));
  const ReplicasOptions& o = replicas->options_;
  ReplicaGroupOptions group{.self = {.group = o.group, .id = o.id, .incarnation = RandomSecret()},
                            .timeout = o.timeout,
                            .seed = RandomSecret()};
  replicas->group_ =
      std::make_unique<ReplicaGroup>(std::move(group), replicas->seal_.get(), *replicas->carrier_,
                                     [self = replicas.get()] { return self->Describe(); });
  replicas->InviteAll();
  return replicas;
}

void Replicas::InviteAll() {
  loads_ = std::make_unique<LoadExchange>(world_.fleet, world_.speed, *group_, world_.relief);
  prompts_ = std::make_unique<PromptExchange>(world_.sent, *group_);
  sessions_ = std::make_unique<SessionExchange>(world_.sessions, world_.pins, *group_);
  group_->Invite(*loads_);
  group_->Invite(*prompts_);
  group_->Invite(*sessions_);
  Intake* const intake = world_.intake;
  if (intake == nullptr) return;
  index_ = std::make_unique<IndexExchange>(
      *group_, *intake, intake->snapshot_counts(),
      [this](std::move_only_function<void()> work) { loop_.Post(std::move(work)); },
      IndexExchangeOptions{.seed = RandomSecret(),
                           .models = options_.models,
                           .awaits_others = [this] { return carrier_->status().awaits; }});
  polls_ = std::make_unique<PollExchange>(*group_, [intake](WorkerId worker, PolledWord word) {
    intake->TakePolled(worker, std::move(word));
  });
  group_->Invite(*index_);
  group_->Invite(*polls_);
  intake->AskFirst(*index_);
  intake->SharePolls(*polls_);
}

Replicas::Replicas(ReplicasOptions options, const World& world, Log& log)
    : options_(std::move(options)), world_(world), log_(log), seal_(SealOf(options_)) {}

Result<std::unique_ptr<Carrier>> Replicas::MakeCarrier(Resolver& resolver) {
  if (const auto* const nats = std::get_if<NatsReplicas>(&options_.spec)) {
    NatsOptions servers = options_.nats;
    servers.urls = nats->urls;
    servers.tls = nats->tls;
    return std::make_unique<NatsCarrier>(loop_, resolver, log_, options_.group, options_.id,
                                         std::move(servers));
  }
  ZmtpMeshOptions mesh{.id = options_.id,
                       .listen = options_.listen,
                       .replicas = std::get<MeshReplicas>(options_.spec)};
  const auto& places = mesh.replicas.places;
  if (std::ranges::find(places, MeshFinding::kKubernetes, &MeshPlace::finding) != places.end()) {
    TRY(const KubeAccess access, FindKubeAccess(options_.kube, KubeSurroundings::OfProcess()));
    TRY(kube_, KubeClient::Create(loop_, resolver, access));
    mesh.kube = kube_.get();
  }
  return ZmtpMesh::Create(loop_, resolver, log_, std::move(mesh));
}

void Replicas::Start() {
  loop_.Post([this] {
    carrier_->Start([this](std::string_view bytes) { group_->Received(bytes, loop_.now()); });
    Spawn(Run());
  });
  thread_ = std::thread([this] { loop_.Run(); });
}

void Replicas::Drain() {
  draining_.store(true, std::memory_order_relaxed);
  loop_.Post([this] { group_->PresentSoon(); });
}

void Replicas::Stop() {
  if (!thread_.joinable()) return;
  std::promise<void> left;
  loop_.Post([&] {
    group_->Goodbye();
    left.set_value();
  });
  left.get_future().wait();
  std::this_thread::sleep_for(kPatienceAtGoodbye);
  loop_.Post([this] {
    stopping_ = true;
    carrier_->Stop();
  });
  ended_.get_future().wait();
  std::this_thread::sleep_for(kPatienceAtGoodbye);
  loop_.Stop();
  thread_.join();
}

Task<void> Replicas::Run() {
  TimePoint next_view{};
  while (!stopping_) {
    group_->Tick(loop_.now());
    if (loop_.now() >= next_view) {
      next_view = loop_.now() + kViewEvery;
      ShowView(loop_.now());
      WatchIds();
      if (seal_ != nullptr) world_.show_peers(group_->peers());
    }
    co_await loop_.Sleep(ReplicaGroup::kTick);
  }
  ended_.set_value();
}

ReplicaPresence Replicas::Describe() const {
  ReplicaPresence presence;
  presence.url = options_.url;
  presence.draining = draining_.load(std::memory_order_relaxed);
  presence.models = options_.models;
  presence.informed = index_ != nullptr && index_->informed();
  presence.version = kVersion;
  const auto fleet = world_.fleet.Current();
  presence.workers = static_cast<uint32_t>(fleet->routable());
  presence.worker_set = fleet->RoutableSet();
  return presence;
}

ReplicaView::Row Replicas::OwnRow(TimePoint now) const {
  const ForeignLoads::Total own = loads_->Own();
  return {.id = options_.id,
          .self = true,
          .heard = now,
          .requests = own.requests,
          .prefill_tokens = own.queued,
          .presence = Describe()};
}

void Replicas::ShowView(TimePoint now) {
  auto view = std::make_shared<ReplicaView>();
  view->carried = carrier_->status();
  view->group = options_.group;
  view->carrier = std::holds_alternative<NatsReplicas>(options_.spec) ? "nats" : "zmq";
  WatchRefusals(now);
  view->refused = refused_;
  view->up = view->carried.up;
  view->problem = view->carried.problem;
  if (since_ == TimePoint{} || view->up != up_) since_ = now;
  up_ = view->up;
  view->since = since_;
  view->conflicts = group_->conflicts();
  view->counts = group_->counts();
  view->rows.push_back(OwnRow(now));
  for (const auto& [id, peer] : group_->peers()) {
    const auto total = loads_->Totals(id);
    view->rows.push_back({.id = id,
                          .self = false,
                          .heard = peer.heard,
                          .requests = total.requests,
                          .prefill_tokens = total.queued,
                          .presence = peer.presence,
                          .hears_us = peer.hears_us,
                          .heard_us = peer.heard_us,
                          .round_trip = peer.round_trip});
  }
  if (polls_ != nullptr) {
    const PollExchange::Counts polls = polls_->counts();
    view->polls = polls.polling;
    view->follows = polls.followed;
    view->answers = {.told = polls.told,
                     .heard = polls.heard,
                     .dropped = polls.dropped,
                     .incomplete = polls.incomplete};
    WatchPlainPolls(polls);
  }
  view->informed = index_ == nullptr || index_->informed();
  if (index_ != nullptr) {
    const auto read = [](const std::atomic<uint64_t>& n) {
      return n.load(std::memory_order_relaxed);
    };
    const SnapshotCounts& taken = world_.intake->snapshot_counts();
    view->snapshots = {.asked = read(index_->counts().asked),
                       .taken = read(taken.adopted),
                       .dropped = read(taken.dropped),
                       .without = read(index_->counts().without),
                       .failed = read(index_->counts().failed),
                       .told = read(index_->counts().served)};
    if (read(index_->counts().by_time) > 0 && !std::exchange(said_by_time_, true)) {
      log_.Warn("The index was not taken over from other replicas in time",
                {{"ranks_asked", view->snapshots.asked},
                 {"ranks_taken", view->snapshots.taken},
                 {"docs", log_.docs().To("replicas.md")}});
    }
  }
  board_.Publish(std::move(view));
}

// Events that an engine streams are as readable on its own network; what is told by NATS is
// readable wherever its clients are.
void Replicas::WatchPlainPolls(const PollExchange::Counts& polls) {
  const auto* const nats = std::get_if<NatsReplicas>(&options_.spec);
  if (said_plain_ || nats == nullptr || nats->tls || polls.told == 0) return;
  said_plain_ = true;
  log_.Warn(
      "Polled KV events contain the token ids of prompts and pass through NATS without encryption: "
      "use tls:// in --replicas",
      {{"group", options_.group}, {"docs", log_.docs().To("replicas.md")}});
}

// Who hears others knows that the key is right: then it is a stranger's message.
void Replicas::WatchRefusals(TimePoint now) {
  constexpr Duration kHeld = std::chrono::seconds(10);
  const ReplicaGroupCounts& counts = group_->counts();
  const auto grown = [&](ReplicaDrop why) {
    const auto i = static_cast<size_t>(why);
    return counts.dropped[i] > before_.dropped[i];
  };
  const bool key = grown(ReplicaDrop::kKey);
  const bool version = grown(ReplicaDrop::kVersion);
  before_ = counts;
  if (key || version) {
    refused_at_ = now;
    refused_ = key ? "another key" : "another major version";
  }
  const bool alone = group_->peers().empty();
  if (!alone) said_refused_ = false;
  if (!alone || now - refused_at_ >= kHeld) refused_ = {};
  if (refused_.empty() || std::exchange(said_refused_, true)) return;
  log_.Warn("No other replica is heard; messages with another key or version are dropped",
            {{"group", options_.group},
             {"they_have", refused_},
             {"docs", log_.docs().To("runbooks/replica-messages-dropped.md")}});
}

// The first keeps the id; what the second one has placed is seen by no other replica.
void Replicas::WatchIds() {
  if (group_->conflicts() == conflicts_) return;
  if (conflicts_ == 0) {
    log_.Warn("Two processes use the same replica id: give each its own with --replica-id",
              {{"group", options_.group},
               {"own_id", options_.id},
               {"docs", log_.docs().To("runbooks/replica-alone.md")}});
  }
  conflicts_ = group_->conflicts();
}

}  // namespace fathom
