#include "router/serve/frontend.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/secret.h"
#include "io/net/tls.h"
#include "metrics/catalogue.h"
#include "router/gateway/replica_pages.h"
#include "router/serve/etcd_access.h"
#include "router/serve/replica_access.h"
#include "router/serve/setting_options.h"
#include "router/sources/etcd_source.h"
#include "router/sources/file_source.h"
#include "router/sources/worker_entry.h"

namespace fathom {
namespace {

KeyFile ApiKeysOf(const Settings& s) {
  return KeyFile("api-keys-file", s.Secrets("api-key"), s.Text("api-keys-file"));
}

KeyFile AdminKeysOf(const Settings& s) {
  const std::string& key = s.Secret("admin-key");
  const auto keys = key.empty() ? std::vector<std::string>() : std::vector<std::string>{key};
  return KeyFile("admin-key-file", keys, s.Text("admin-key-file"));
}

ListenPlan::Keys KeysSet(const Settings& s) {
  return {.clients = ApiKeysOf(s).configured(), .operators = AdminKeysOf(s).configured()};
}

// A report from before a worker was lost does not describe its present load.
void CollectEngineLoads(const FleetSnapshot& fleet, Exposition& out) {
  for (const Member& member : fleet.members()) {
    const auto report = member.worker->report.Current();
    if (report == nullptr || member.state != WorkerState::kReady) continue;
    CollectLoads(*report, member.worker->id_text(), out);
  }
}

// `prefix` is that of the options: "" or "admin-".
Result<std::shared_ptr<const TlsServerContext>> TlsOf(const Settings& s, std::string_view prefix) {
  const std::string& certificate = s.Text(fmt::format("{}tls-cert", prefix));
  if (certificate.empty()) return nullptr;
  return TlsServerContext::Load(certificate, s.Text(fmt::format("{}tls-key", prefix)));
}

}  // namespace

Result<void> Frontend::Check(const Settings& settings) {
  TRY_VOID(ListenPlan::Of(settings, KeysSet(settings)));
  for (const std::string& path : settings.List("pass-routes")) TRY_VOID(PassRoutes::Check(path));
  TRY_VOID(ParseSessionHints(settings.List("session-hints")));
  TRY_VOID(CheckReplicas(settings));
  TRY_VOID(SliceOf(settings));
  return {};
}

Result<std::unique_ptr<Frontend>> Frontend::Create(const Settings& settings,
                                                   const Environment& environment, Log& log) {
  TRY_VOID(Check(settings));
  TRY(const ListenPlan listen, ListenPlan::Of(settings, KeysSet(settings)));
  TRY(ResolverOptions names, ResolverOptionsOf(settings, log));
  std::unique_ptr<Frontend> frontend(new Frontend(settings, environment, listen, log));
  frontend->resolver_ = std::make_unique<Resolver>(std::move(names));
  TRY(frontend->group_, ReplicasOptionsOf(settings));
  for (size_t i = 0; i < ThreadsOf(settings); ++i) {
    frontend->loops_.push_back(std::make_unique<Loop>());
  }
  TRY_VOID(frontend->LoadFleet());
  TRY_VOID(frontend->OpenIntake());
  TRY_VOID(frontend->OpenGateway());
  TRY_VOID(frontend->OpenReplicas());
  TRY_VOID(frontend->OpenServers());
  return frontend;
}

Frontend::Frontend(const Settings& settings, const Environment& environment,
                   const ListenPlan& listen, Log& log)
    : settings_(settings),
      environment_(environment),
      listen_(listen),
      api_keys_(ApiKeysOf(settings)),
      admin_keys_(AdminKeysOf(settings)),
      log_(log) {}

Frontend::~Frontend() { Stop(); }

std::optional<std::string> Frontend::Variable(const std::string& name) const {
  const auto found = environment_.find(name);
  if (found == environment_.end()) return std::nullopt;
  return found->second;
}

// Not the seed of the choices: clients must not be able to predict places in the index. Replicas of
// a group have the same, so that they can compare keys.
uint64_t Frontend::SecretFor(std::string_view purpose) const {
  return group_ ? ReplicaSecret(*group_, purpose) : RandomSecret();
}

Result<void> Frontend::LoadFleet() {
  const BreakerOptions breaker{static_cast<uint32_t>(settings_.Integer("circuit-breaker-failures")),
                               settings_.Time("circuit-breaker-open")};
  TRY(ModelSlice slice, SliceOf(settings_));
  fleet_ = std::make_unique<Fleet>(breaker, Fleet::kMaxWorkers, std::move(slice));
  TRY(const BlockSizeRules rules, BlockSizeRulesOf(settings_));
  if (rules.configured != 0 && !NeedsBlockSizes(settings_)) {
    log_.Warn("kv-cache-block-size has no effect: only --router-mode kv with KV events uses it");
  }
  sizes_ = std::make_unique<BlockSizes>(rules, NeedsBlockSizes(settings_), *fleet_, log_,
                                        std::chrono::steady_clock::now());
  registry_.AddCollector([this](Exposition& out) { sizes_->Collect(*fleet_->Current(), out); });
  prober_ = std::make_unique<Prober>(control_, *resolver_, *fleet_, ProbeOptionsOf(settings_), log_,
                                     sizes_.get());
  if (const Duration interval = settings_.Time("engine-load-interval");
      interval > Duration::zero()) {
    const LoadWatchOptions options{.interval = interval};
    load_watch_ =
        std::make_unique<LoadWatch>(control_, *resolver_, *fleet_, options, log_, sizes_.get());
    registry_.AddCollector(
        [this](Exposition& out) { CollectEngineLoads(*fleet_->Current(), out); });
  }
  auto variable = [this](const std::string& name) { return Variable(name); };
  directory_ =
      std::make_unique<Directory>(*fleet_, *prober_, std::move(variable), log_, load_watch_.get(),
                                  sizes_.get(), settings_.List("worker-key-env"));
  auto resolve = [this](std::string host, uint16_t port) {
    return resolver_->Ask(control_, std::move(host), port);
  };
  const DnsWatchOptions watch{.interval = settings_.Time("dns-interval")};
  muster_ = std::make_unique<Muster>(*directory_, log_);
  dns_watch_ =
      std::make_unique<DnsWatch>(control_, *directory_, *muster_, std::move(resolve), watch, log_);
  sources_ = std::make_unique<WorkerSources>(control_, *muster_, *dns_watch_);
  sources_->Teach("file", [this](const WorkerRequest& entry) {
    return FileSource::Create(entry, *muster_, log_);
  });
  TRY_VOID(TeachEtcd());
  kube_door_ = std::make_unique<KubeDoor>(control_, *resolver_, *directory_, *muster_, log_,
                                          KubeWish{.kubeconfig = settings_.Text("kubeconfig")});
  kube_door_->Teach(*sources_);
  return AddWorkers();
}

Result<void> Frontend::TeachEtcd() {
  TRY(const EtcdClientOptions options, EtcdOptionsOf(settings_, environment_));
  const auto make = [this, options](const WorkerRequest& entry) {
    return EtcdSource::Create(control_, *resolver_, *muster_, entry, options, log_);
  };
  for (const char* scheme : {"etcd", "etcds"}) sources_->Teach(scheme, make);
  return {};
}

Result<void> Frontend::AddWorkers() {
  for (const WorkerEntry& entry : settings_.workers()) {
    auto added = sources_->Add(RequestOf(entry, WorkerRequest::From::kOperator), entry.origin);
    if (!added) return std::unexpected(std::move(added).error().In(entry.origin));
  }
  return {};
}

Result<void> Frontend::OpenIntake() {
  if (!FollowsEvents(settings_)) {
    if (settings_.Choice("router-mode") == "kv") {
      log_.Warn(
          "KV events are not followed: cache contents are estimated from where prompts were "
          "sent; remove --no-router-kv-events and --kv-events off to use KV events");
    }
    return {};
  }
  cache_index_ = std::make_unique<CacheIndex>(settings_.Bytes("index-max-bytes"),
                                              SecretFor("index"), settings_.Bytes("trust-memory"));
  auto find_endpoint = [this](WorkerId id) { return directory_->Find(id); };
  TRY(const IntakeOptions options, IntakeOptionsOf(settings_));
  TRY(intake_, Intake::Create(options, *fleet_, std::move(find_endpoint), *resolver_, *cache_index_,
                              feeds_, *sizes_, log_));
  registry_.AddCollector([this](Exposition& out) {
    CollectCacheMetrics(*fleet_->Current(), feeds_, *cache_index_, out);
  });
  return {};
}

// Files that cannot be read are a start error, and so is a model that the hub refuses. A model
// whose files need an unsupported feature is tokenized by its engines.
Result<ModelLibrary> Frontend::LoadModels() {
  const TimePoint begun = std::chrono::steady_clock::now();
  TRY(const std::vector<ModelLibrary::Named> plan,
      ModelLibrary::Plan(settings_.List("model-path"), settings_.List("tokenizer-path")));
  ModelLibrary library;
  std::vector<ModelLibrary::Named> of_hub;
  for (const ModelLibrary::Named& named : plan) {
    if (HubRef::Is(named.paths.model)) {
      of_hub.push_back(named);
      continue;
    }
    TRY_VOID(library.Add(named));
    LogFiles(log_, named.model, *library.Current()->Find(named.model),
             std::chrono::steady_clock::now() - begun);
  }
  const bool search = settings_.Flag("find-model-files") && UsesPrompts(settings_);
  if (!search && of_hub.empty()) return library;
  ModelFinder::Options options{
      .hub = HubEnvironment::Of([this](const std::string& name) { return Variable(name); }),
      .roots = settings_.List("model-root"),
      .search = search,
      .patience = settings_.Time("hub-timeout")};
  model_finder_ =
      std::make_unique<ModelFinder>(std::move(options), library, *fleet_, *resolver_, log_);
  TRY_VOID(model_finder_->Fetch(of_hub));
  return library;
}

Result<void> Frontend::OpenGateway() {
  GatewayOptions options = GatewayOptionsOf(settings_);
  TRY(options.api_keys, api_keys_.Read());
  TRY(options.admin_keys, admin_keys_.Read());
  if (group_) options.replica_id = group_->id;
  options.replica_ca_file = settings_.Text("replica-ca-file");
  options.main_listener = listen_.main_rules;
  options.admin_listener = listen_.admin_rules;
  TRY(ModelLibrary models, LoadModels());
  context_ = std::make_unique<GatewayContext>(options, std::move(models), *fleet_, *directory_,
                                              *resolver_, registry_, log_, SecretFor("prompts"));
  context_->cache_index = cache_index_.get();
  context_->feeds = &feeds_;
  context_->sizes = sizes_.get();
  if (FollowsEvents(settings_)) {
    const TrustRules rules{.no_events_after = settings_.Time("no-events-after"),
                           .lag_limit = settings_.Time("event-lag-limit"),
                           .settling = 2 * settings_.Time("engine-load-interval")};
    trust_ = std::make_unique<TrustKeeper>(
        rules, *fleet_, *sizes_, feeds_,
        [this](std::string_view model, TokenId token) { return PieceOf(model, token); }, log_);
    context_->trust = trust_.get();
    registry_.AddCollector([this](Exposition& out) { trust_->Collect(*fleet_->Current(), out); });
  }
  if (NeedsBlockSizes(settings_) && options.tokenize_timeout > Duration::zero()) {
    parity_ = std::make_unique<ParityCheck>(
        control_, *resolver_, *directory_, *fleet_, context_->models, context_->tokenizers.builds(),
        context_->parity, registry_, log_, options.forward_tokens);
    prober_->SetCheck(parity_.get());
  } else {
    context_->parity.NobodyAsks();
  }
  context_->sources = sources_.get();
  registry_.AddCollector([this](Exposition& out) {
    const auto fleet = fleet_->Current();
    out.Add(Metric("fathom_log_dropped_total"), {}, static_cast<double>(log_.dropped()));
    out.Add(Metric("kv_router_response_pins"), {},
            static_cast<double>(context_->response_pins.size()));
    out.Add(Metric("kv_router_unread_models"), {},
            static_cast<double>(context_->prompt_watch.UnreadIn(*fleet).size()));
    CollectWorkerMetrics(*fleet, out);
    CollectRoutingMetrics(*fleet, context_->steering, context_->dispatch.waiting(),
                          std::chrono::steady_clock::now(), out);
  });
  desk_ = std::make_unique<PageDesk>(*context_, control_);
  Random seeds(SeedOf(settings_));
  for (const auto& loop : loops_) {
    gateways_.push_back(std::make_unique<Gateway>(*context_, *loop, *desk_, seeds.Next()));
  }
  return {};
}

Result<void> Frontend::OpenReplicas() {
  if (!group_) return {};
  const Replicas::World world{
      .fleet = *fleet_,
      .speed = context_->steering.speed,
      .sent = context_->steering.sent,
      .sessions = context_->affinity,
      .pins = context_->response_pins,
      .intake = intake_.get(),
      .relief = [this] { context_->dispatch.Wake(); },
      .show_peers = [this](const ReplicaPeers& peers) { ShowPeers(peers); }};
  TRY(replicas_, Replicas::Create(*group_, world, *resolver_, log_));
  context_->replicas = &replicas_->board();
  registry_.AddCollector([this](Exposition& out) {
    CollectReplicas(replicas_->board(), out);
    CollectForwarded(context_->peers.counts(), out);
  });
  if (settings_.Flag("replica-open")) {
    log_.Warn(
        "Every program that reaches the replicas' carrier can steer requests: set "
        "--replica-key-file",
        {{"docs", log_.docs().To("replicas.md")}});
  }
  return {};
}

// On the replicas' loop. What cannot be used is said once for each problem.
void Frontend::ShowPeers(const ReplicaPeers& peers) {
  std::vector<PeerReplica> told;
  for (const auto& [id, peer] : peers) {
    if (peer.presence_number == 0) continue;  // it has not said yet what it serves
    told.push_back({.id = id,
                    .url = peer.presence.url,
                    .models = peer.presence.models,
                    .draining = peer.presence.draining.value_or(false)});
  }
  if (told == told_peers_) return;
  for (const Error& error : context_->peers.Set(told)) {
    log_.Warn("Requests cannot be forwarded to a replica", {{"reason", error.what}});
  }
  told_peers_ = std::move(told);
}

Result<void> Frontend::OpenServers() {
  TRY(auto tls, TlsOf(settings_, ""));
  TRY(auto admin_tls, TlsOf(settings_, "admin-"));
  std::vector<HttpServer::Place> places;
  for (size_t i = 0; i < loops_.size(); ++i)
    places.push_back({loops_[i].get(), gateways_[i].get()});
  const auto most = static_cast<size_t>(settings_.Integer("max-connections"));
  const ServerOptions options = ServerOptionsOf(settings_);
  server_ = std::make_unique<HttpServer>(std::move(places), options, most, log_);
  TRY(address_, server_->Listen(listen_.main, tls));
  log_.Info("Listening", {{"address", address_.ToString()},
                          {"tls", tls != nullptr},
                          {"router_mode", settings_.Choice("router-mode")},
                          {"threads", loops_.size()}});
  if (!listen_.admin) {
    WarnAboutOpenAdmin(address_);
    return {};
  }
  admin_ = std::make_unique<AdminHandler>(*context_, control_, *desk_);
  std::vector<HttpServer::Place> control = {{&control_, admin_.get()}};
  admin_server_ = std::make_unique<HttpServer>(std::move(control), options, most, log_);
  TRY(const Address admin_address, admin_server_->Listen(*listen_.admin, admin_tls));
  log_.Info("Admin pages", {{"address", admin_address.ToString()}, {"tls", admin_tls != nullptr}});
  WarnAboutOpenAdmin(admin_address);
  return {};
}

void Frontend::WarnAboutOpenAdmin(const Address& pages) const {
  if (pages.loopback() || admin_keys_.configured()) return;
  log_.Warn(
      "Anyone who reaches this port can add and remove workers: set --admin-key, or keep the admin "
      "pages on loopback with --admin-listen",
      {{"address", pages.ToString()}, {"docs", log_.docs().To("security.md")}});
}

void Frontend::Start() {
  if (settings_.workers().empty()) {
    log_.Warn("No workers are configured: set --worker-urls, or add some with POST /workers");
  }
  if (intake_) intake_->Start();
  if (replicas_) replicas_->Start();
  control_.Post([this] { Spawn(WatchBlockSizes()); });
  if (trust_) control_.Post([this] { Spawn(WatchTrust()); });
  if (model_finder_) model_finder_->Start();
  threads_.emplace_back([this] { control_.Run(); });
  for (size_t i = 0; i < loops_.size(); ++i) {
    loops_[i]->Post([gateway = gateways_[i].get()] { Spawn(gateway->Housekeep()); });
    threads_.emplace_back([loop = loops_[i].get()] { loop->Run(); });
  }
}

// At the start, until every configured worker has reported its block size; afterwards for workers
// that join later and do not report one.
Task<void> Frontend::WatchBlockSizes() {
  constexpr Duration kSoon = std::chrono::milliseconds(10);
  constexpr Duration kLater = std::chrono::milliseconds(100);
  for (;;) {
    const bool starting = sizes_->Tick(control_.now(), muster_->pending() > 0);
    co_await control_.Sleep(starting ? kSoon : kLater);
  }
}

Task<void> Frontend::WatchTrust() {
  for (;;) {
    if (cache_index_->lost() != nullptr) cache_index_->lost()->SetNow(control_.now());
    trust_->Tick(control_.now());
    co_await control_.Sleep(TrustKeeper::kInterval);
  }
}

// An adapter has the vocabulary of its base model.
std::string Frontend::PieceOf(std::string_view model, TokenId token) const {
  const auto fleet = fleet_->Current();
  const auto files = context_->models.Find(model, fleet->BaseOf(model));
  return files == nullptr ? std::string() : files->tokenizer().Piece(token);
}

void Frontend::Reload() {
  ReloadCertificate("", *server_);
  if (admin_server_) ReloadCertificate("admin-", *admin_server_);
  if (api_keys_.named()) ReloadKeys(api_keys_, context_->api_keys);
  if (admin_keys_.named()) ReloadKeys(admin_keys_, context_->admin_keys);
}

void Frontend::ReloadChangedKeys() {
  constexpr Duration kInterval = std::chrono::milliseconds(500);
  const TimePoint now = std::chrono::steady_clock::now();
  if (now < next_look_) return;
  next_look_ = now + kInterval;
  if (api_keys_.HasChanged()) ReloadKeys(api_keys_, context_->api_keys);
  if (admin_keys_.HasChanged()) ReloadKeys(admin_keys_, context_->admin_keys);
}

void Frontend::ReloadKeys(KeyFile& file, KeyRing& ring) {
  auto keys = file.Read();
  if (!keys) {
    log_.Error("Keys were not reloaded; the old ones stay in use", {{"reason", keys.error().what}});
    return;
  }
  const size_t count = keys->size();
  Retire(ring.Replace(*std::move(keys)));
  log_.Info("Keys reloaded", {{"option", file.option()}, {"keys", count}});
}

// The loops read keys without a lock. A loop that runs this no longer reads the former ones.
void Frontend::Retire(std::shared_ptr<const KeyRing::Keys> former) {
  for (const auto& loop : loops_) loop->Post([former]() mutable { former.reset(); });
  control_.Post([former]() mutable { former.reset(); });
}

void Frontend::ReloadCertificate(std::string_view prefix, HttpServer& server) {
  const std::string& file = settings_.Text(fmt::format("{}tls-cert", prefix));
  if (file.empty()) return;
  auto tls = TlsOf(settings_, prefix);
  if (!tls) {
    log_.Error("Certificates were not reloaded; the old ones stay in use",
               {{"reason", tls.error().what}});
    return;
  }
  server.ReplaceTls(*std::move(tls));
  log_.Info("Certificates reloaded", {{"certificate", file}});
}

bool Frontend::Drain(Duration patience) {
  context_->draining.store(true, std::memory_order_relaxed);
  server_->Drain();
  if (replicas_) replicas_->Drain();
  if (intake_) intake_->StopPolling();
  const TimePoint begin = std::chrono::steady_clock::now();
  const TimePoint until = begin + patience;
  // An engine holds a poll for up to two seconds.
  const TimePoint until_polled = begin + std::chrono::milliseconds(2500);
  const auto polling = [&] {
    return intake_ && intake_->polling() && std::chrono::steady_clock::now() < until_polled;
  };
  const auto busy = [this] {
    return context_->admission.inside() > 0 || context_->admission.waiting() > 0 ||
           context_->reading.load(std::memory_order_relaxed) > 0;
  };
  // For a moment between its body and its admission a request is counted nowhere, so one look is
  // not enough.
  constexpr int kLooks = 2;
  for (int idle = 0; idle < kLooks && std::chrono::steady_clock::now() < until;) {
    idle = busy() || polling() ? 0 : idle + 1;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return !busy();
}

void Frontend::Stop() {
  if (muster_) muster_->End();
  if (replicas_) replicas_->Stop();
  if (intake_) intake_->Stop();
  if (model_finder_) model_finder_->Stop();
  for (const auto& loop : loops_) loop->Stop();
  control_.Stop();
  threads_.clear();  // joins
  if (context_) context_->side_work.Stop();
  resolver_->Stop();
}

}  // namespace fathom
