#include "app/frontend.h"

#include <netdb.h>

#include <algorithm>
#include <random>

#include "base/file.h"
#include "base/text.h"
#include "net/tls.h"

namespace fathom {
namespace {

// Not the seed of the choices: nobody outside may know where blocks go in the index.
uint64_t RandomSecret() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

uint64_t SeedOf(const Settings& settings) {
  const int64_t seed = settings.Integer("seed");
  return seed != 0 ? static_cast<uint64_t>(seed) : RandomSecret();
}

size_t ThreadsOf(const Settings& settings) {
  const int64_t asked = settings.Integer("threads");
  if (asked > 0) return static_cast<size_t>(asked);
  return std::max(1u, std::thread::hardware_concurrency());
}

size_t TokenizeThreadsOf(const Settings& settings) {
  const int64_t asked = settings.Integer("tokenize-threads");
  if (asked > 0) return static_cast<size_t>(asked);
  return std::clamp<size_t>(std::thread::hardware_concurrency() / 2, 1, 4);
}

// Blocking, and only used before the loops run.
Result<Address> ListenAddress(const std::string& host, uint16_t port) {
  if (const auto numeric = Address::Numeric(host.empty() ? "0.0.0.0" : host, port)) return *numeric;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0) {
    return Fail(Blame::kCaller, "cannot listen on '{}': {}", host, gai_strerror(error));
  }
  const Address address = Address::Of(found->ai_addr, found->ai_addrlen).WithPort(port);
  freeaddrinfo(found);
  return address;
}

Result<std::vector<std::string>> ApiKeys(const Settings& settings) {
  std::vector<std::string> keys = settings.Secrets("api-key");
  const std::string& file = settings.Text("api-keys-file");
  if (file.empty()) return keys;
  auto text = ReadFile(file);
  if (!text) return std::unexpected(std::move(text).error().In("api-keys-file " + file));
  for (const std::string_view line : SplitAny(*text, "\r\n")) {
    const std::string_view key = Trim(line);
    if (!key.empty() && !key.starts_with('#')) keys.emplace_back(key);
  }
  if (keys.empty()) return Fail(Blame::kCaller, "api-keys-file {} has no key in it", file);
  return keys;
}

bool FollowsEvents(const Settings& s) {
  return s.Choice("kv-events") == "on" && s.Flag("router-kv-events");
}

// Where nobody looks at what caches hold, it does not matter how large their blocks are.
bool NeedsBlockSizes(const Settings& s) {
  return FollowsEvents(s) && s.Choice("router-mode") == "kv";
}

Result<BlockSizeRules> BlockSizeRulesOf(const Settings& s) {
  BlockSizeRules rules;
  rules.configured = static_cast<uint32_t>(s.Integer("kv-cache-block-size"));
  rules.mixed = s.Choice("block-size-conflict") == "mixed";
  rules.wait = s.Time("block-size-wait");
  if (rules.configured != 0 && rules.mixed) {
    return Fail(
        Blame::kCaller,
        "kv-cache-block-size {} (from {}) and block-size-conflict mixed exclude each other: "
        "leave out kv-cache-block-size, block sizes are found out",
        rules.configured, s.OriginOf("kv-cache-block-size"));
  }
  return rules;
}

Weights WeightsOf(const Settings& s) {
  Weights w;
  w.overlap_credit = s.Number("router-kv-overlap-score-credit");
  w.prefill_scale = s.Number("router-prefill-load-scale");
  w.active_request = s.Number("router-decode-active-request-weight");
  w.host_hit = s.Number("router-host-cache-hit-weight");
  w.disk_hit = s.Number("router-disk-cache-hit-weight");
  w.temperature = s.Number("router-temperature");
  const auto set = [&](std::string_view name) { return s.OriginOf(name) != "default"; };
  constexpr std::string_view kOlder = "router-kv-overlap-score-weight";
  const bool newer = set("router-prefill-load-scale") || set("router-kv-overlap-score-credit");
  if (!set(kOlder) || newer) return w;
  // 0 turns the credit off; as a scale it would leave nothing but decoding to choose by.
  const double weight = s.Number(kOlder);
  weight == 0 ? w.overlap_credit = 0 : w.prefill_scale = weight;
  return w;
}

SteeringOptions SteeringOptionsOf(const Settings& s) {
  SteeringOptions o;
  o.mode = *ParseRouterMode(s.Choice("router-mode"));
  o.events = FollowsEvents(s);
  o.weights = WeightsOf(s);
  o.belief_outlives = s.Time("router-belief-ttl");
  o.approximate_ttl = s.Time("router-ttl");
  o.approximate_bytes = s.Bytes("index-max-bytes");
  o.prefix_tokens = static_cast<size_t>(s.Integer("router-prefix-hash-tokens"));
  o.prefix_bound = s.Number("router-prefix-hash-bound");
  o.queue_threshold = s.Number("router-queue-threshold");
  o.decisions_kept = static_cast<size_t>(s.Integer("decisions-kept"));
  return o;
}

Result<GatewayOptions> GatewayOptionsOf(const Settings& s) {
  GatewayOptions o;
  o.steering = SteeringOptionsOf(s);
  o.session_ttl = s.Time("session-affinity-ttl");
  o.max_in_flight = static_cast<uint32_t>(s.Integer("max-in-flight"));
  o.max_waiting = static_cast<uint32_t>(s.Integer("max-waiting"));
  o.queue_timeout = s.Time("queue-timeout");
  o.connect_timeout = s.Time("connect-timeout");
  o.first_byte_timeout = s.Time("first-byte-timeout");
  o.idle_timeout = s.Time("idle-timeout");
  o.request_timeout = s.Time("request-timeout");
  o.silent_stream_grace = s.Time("silent-stream-grace");
  o.pool_size = static_cast<size_t>(s.Integer("pool-size"));
  o.pool_idle_timeout = s.Time("upstream-keep-alive-timeout");
  o.retry_attempts = static_cast<uint32_t>(s.Integer("retry-attempts"));
  o.retry_budget = s.Number("retry-budget");
  TRY(o.api_keys, ApiKeys(s));
  o.admin_key = s.Secret("admin-key");
  o.admin_elsewhere = !s.Text("admin-listen").empty();
  o.log_requests = s.Flag("log-requests");
  o.log_selections = s.Flag("log-selections");
  o.routing_headers = s.Flag("routing-headers");
  o.dispatch_timeout = s.Time("router-queue-timeout");
  // A little more than workers are waited for, so that nobody is turned away just before.
  o.fleet_wait = s.Time("block-size-wait") + std::chrono::seconds(1);
  o.tokenize_timeout = s.Time("tokenize-timeout");
  o.tokenize_cache_bytes = s.Bytes("tokenize-cache-bytes");
  o.tokenize_threads = TokenizeThreadsOf(s);
  o.forward_tokens = s.Flag("forward-tokens");
  o.literal_user_text = s.Flag("literal-user-text");
  o.ask_usage = s.Flag("ask-usage");
  o.ready_when_trusted = s.Choice("ready-when") == "trusted";
  return o;
}

ServerOptions ServerOptionsOf(const Settings& s) {
  ServerOptions o;
  o.max_head = s.Bytes("max-head-size");
  o.max_body = s.Bytes("max-body-size");
  o.body_budget = std::make_shared<BodyBudget>(s.Bytes("max-body-memory"));
  o.head_timeout = s.Time("head-timeout");
  o.body_timeout = s.Time("body-timeout");
  o.write_timeout = s.Time("write-timeout");
  o.keep_alive_timeout = s.Time("keep-alive-timeout");
  return o;
}

ProbeOptions ProbeOptionsOf(const Settings& s) {
  ProbeOptions o;
  o.interval = s.Time("health-check-interval");
  o.timeout = s.Time("health-check-timeout");
  o.failures = static_cast<uint32_t>(s.Integer("health-check-failures"));
  o.path = s.Text("health-check-path");
  return o;
}

IntakeOptions IntakeOptionsOf(const Settings& s) {
  IntakeOptions o;
  o.port = static_cast<uint16_t>(s.Integer("kv-events-port"));
  o.bind = s.Text("kv-events-bind");
  o.replay_timeout = s.Time("kv-events-replay-timeout");
  o.poll_interval = s.Time("kv-events-poll-interval");
  return o;
}

// What a worker said before it was lost says nothing of now.
void CollectEngineLoads(const FleetSnapshot& fleet, Exposition& out) {
  for (const Member& member : fleet.members()) {
    const auto report = member.worker->report.Current();
    if (report == nullptr || member.state != WorkerState::kReady) continue;
    CollectLoads(*report, member.worker->id_text(), out);
  }
}

Result<std::shared_ptr<const TlsServerContext>> TlsOf(const Settings& s) {
  if (s.Text("tls-cert").empty()) return nullptr;
  return TlsServerContext::Load(s.Text("tls-cert"), s.Text("tls-key"));
}

}  // namespace

Result<std::unique_ptr<Frontend>> Frontend::Create(const Settings& settings,
                                                   const Environment& environment, Log& log) {
  std::unique_ptr<Frontend> frontend(new Frontend(settings, log));
  frontend->resolver_ = std::make_unique<Resolver>();
  for (size_t i = 0; i < ThreadsOf(settings); ++i) {
    frontend->loops_.push_back(std::make_unique<Loop>());
  }
  TRY_VOID(frontend->LoadFleet(environment));
  TRY_VOID(frontend->OpenIntake());
  TRY_VOID(frontend->OpenGateway());
  TRY_VOID(frontend->OpenServers());
  return frontend;
}

Frontend::~Frontend() { Stop(); }

Result<void> Frontend::LoadFleet(const Environment& environment) {
  const BreakerOptions breaker{static_cast<uint32_t>(settings_.Integer("circuit-breaker-failures")),
                               settings_.Time("circuit-breaker-open")};
  fleet_ = std::make_unique<Fleet>(breaker);
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
  auto variable = [environment](const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
  };
  directory_ = std::make_unique<Directory>(*fleet_, *prober_, std::move(variable), log_,
                                           load_watch_.get(), sizes_.get());
  name_resolver_ = std::make_unique<Resolver>();
  auto resolve = [this](std::string host, uint16_t port) {
    return name_resolver_->Ask(control_, std::move(host), port);
  };
  const DnsWatchOptions watch{.interval = settings_.Time("dns-interval")};
  dns_watch_ = std::make_unique<DnsWatch>(control_, *directory_, std::move(resolve), watch, log_);
  return AddWorkers();
}

Result<void> Frontend::AddWorkers() {
  for (const WorkerEntry& entry : settings_.workers()) {
    const WorkerRequest request{.url = entry.url,
                                .kv_events = entry.kv_events,
                                .kv_events_replay = entry.kv_events_replay,
                                .kv_events_topic = entry.kv_events_topic,
                                .api_key_env = entry.api_key_env.value_or(""),
                                .ca_file = entry.ca_file.value_or("")};
    auto added = dns_watch_->Add(request);
    if (!added) return std::unexpected(std::move(added).error().In(entry.origin));
  }
  return {};
}

Result<void> Frontend::OpenIntake() {
  if (!FollowsEvents(settings_)) {
    if (settings_.Choice("router-mode") == "kv") {
      log_.Warn(
          "KV events are not followed: what the workers' caches hold is guessed from where prompts "
          "were sent; leave out --no-router-kv-events and --kv-events off to know it");
    }
    return {};
  }
  cache_index_ = std::make_unique<CacheIndex>(settings_.Bytes("index-max-bytes"), RandomSecret(),
                                              settings_.Bytes("trust-memory"));
  auto find_endpoint = [this](WorkerId id) { return directory_->Find(id); };
  TRY(intake_, Intake::Create(IntakeOptionsOf(settings_), *fleet_, std::move(find_endpoint),
                              *resolver_, *cache_index_, feeds_, *sizes_, log_));
  registry_.AddCollector([this](Exposition& out) {
    CollectCacheMetrics(*fleet_->Current(), feeds_, *cache_index_, out);
  });
  return {};
}

// Files that cannot be read end the start; what they need and we do not have is left to engines.
Result<ModelLibrary> Frontend::LoadModels() const {
  const TimePoint begun = std::chrono::steady_clock::now();
  TRY(auto library,
      ModelLibrary::Load(settings_.List("model-path"), settings_.List("tokenizer-path")));
  for (const ModelLibrary::Entry& entry : library.entries()) {
    const std::string model = entry.model.empty() ? "(all)" : entry.model;
    if (!entry.usable) {
      log_.Warn("This tokenizer cannot be used here; engines are asked for tokens",
                {{"model", model}, {"problem", entry.problem}});
    } else if (!entry.problem.empty()) {
      log_.Warn("Texts are tokenized here, but chats are not: engines are asked for their tokens",
                {{"model", model}, {"path", entry.path}, {"problem", entry.problem}});
    } else {
      const Duration took = std::chrono::steady_clock::now() - begun;
      log_.Info("Prompts are tokenized here",
                {{"model", model}, {"path", entry.path}, {"seconds", Seconds(took)}});
    }
  }
  return library;
}

Result<void> Frontend::OpenGateway() {
  TRY(const GatewayOptions options, GatewayOptionsOf(settings_));
  TRY(ModelLibrary models, LoadModels());
  context_ = std::make_unique<GatewayContext>(options, std::move(models), *fleet_, *directory_,
                                              *resolver_, registry_, log_, RandomSecret());
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
  context_->dns_watch = dns_watch_.get();
  registry_.AddCollector([this](Exposition& out) {
    const auto fleet = fleet_->Current();
    CollectWorkerMetrics(*fleet, out);
    CollectRoutingMetrics(*fleet, context_->steering, context_->dispatch.waiting(),
                          std::chrono::steady_clock::now(), out);
  });
  Random seeds(SeedOf(settings_));
  for (const auto& loop : loops_) {
    gateways_.push_back(std::make_unique<Gateway>(*context_, *loop, seeds.Next()));
  }
  return {};
}

Result<void> Frontend::OpenServers() {
  TRY(auto tls, TlsOf(settings_));
  std::vector<HttpServer::Place> places;
  for (size_t i = 0; i < loops_.size(); ++i)
    places.push_back({loops_[i].get(), gateways_[i].get()});
  const auto most = static_cast<size_t>(settings_.Integer("max-connections"));
  const ServerOptions options = ServerOptionsOf(settings_);
  server_ = std::make_unique<HttpServer>(std::move(places), options, most, log_);
  TRY(const Address wanted,
      ListenAddress(settings_.Text("host"), static_cast<uint16_t>(settings_.Integer("port"))));
  TRY(address_, server_->Listen(wanted, tls));
  log_.Info("Listening", {{"address", address_.ToString()},
                          {"tls", tls != nullptr},
                          {"router_mode", settings_.Choice("router-mode")},
                          {"threads", loops_.size()}});
  const std::string& admin_listen = settings_.Text("admin-listen");
  if (admin_listen.empty()) {
    WarnAboutOpenAdmin(address_);
    return {};
  }
  admin_ = std::make_unique<AdminHandler>(*context_, control_);
  std::vector<HttpServer::Place> control = {{&control_, admin_.get()}};
  admin_server_ = std::make_unique<HttpServer>(std::move(control), options, most, log_);
  TRY(const auto host_port, SplitHostPort(admin_listen));
  TRY(const Address admin_wanted, ListenAddress(host_port.first, host_port.second));
  TRY(const Address admin_address, admin_server_->Listen(admin_wanted, nullptr));
  log_.Info("Admin pages", {{"address", admin_address.ToString()}});
  WarnAboutOpenAdmin(admin_address);
  return {};
}

void Frontend::WarnAboutOpenAdmin(const Address& pages) const {
  if (pages.loopback() || !settings_.Secret("admin-key").empty()) return;
  log_.Warn(
      "Anyone who reaches this port can add and remove workers: set --admin-key, or keep the admin "
      "pages on loopback with --admin-listen",
      {{"address", pages.ToString()}, {"docs", "docs/security.md"}});
}

void Frontend::Start() {
  if (settings_.workers().empty()) {
    log_.Warn("No workers are configured: set --worker-urls, or add some with POST /workers");
  }
  if (intake_) intake_->Start();
  control_.Post([this] { Spawn(WatchBlockSizes()); });
  if (trust_) control_.Post([this] { Spawn(WatchTrust()); });
  threads_.emplace_back([this] { control_.Run(); });
  for (size_t i = 0; i < loops_.size(); ++i) {
    loops_[i]->Post([gateway = gateways_[i].get()] { Spawn(gateway->Housekeep()); });
    threads_.emplace_back([loop = loops_[i].get()] { loop->Run(); });
  }
}

// At the start, until everybody who was configured has said how large its blocks are; then for
// those who come later, and do not say.
Task<void> Frontend::WatchBlockSizes() {
  constexpr Duration kSoon = std::chrono::milliseconds(10);
  constexpr Duration kLater = std::chrono::milliseconds(100);
  for (;;) {
    const bool starting = sizes_->Tick(control_.now(), dns_watch_->pending() > 0);
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

// An adapter has its base's vocabulary.
std::string Frontend::PieceOf(std::string_view model, TokenId token) const {
  const auto fleet = fleet_->Current();
  const auto files = context_->models.Find(model, fleet->BaseOf(model));
  return files == nullptr ? std::string() : files->tokenizer().Piece(token);
}

void Frontend::ReloadCertificates() {
  if (settings_.Text("tls-cert").empty()) return;
  auto tls = TlsOf(settings_);
  if (!tls) {
    log_.Error("Certificates were not reloaded; the old ones stay", {{"reason", tls.error().what}});
    return;
  }
  server_->ReplaceTls(*std::move(tls));
  log_.Info("Certificates reloaded", {{"certificate", settings_.Text("tls-cert")}});
}

bool Frontend::Drain(Duration patience, const std::function<bool()>& impatient) {
  context_->draining.store(true, std::memory_order_relaxed);
  server_->Drain();
  if (intake_) intake_->StopPolling();
  const TimePoint until = std::chrono::steady_clock::now() + patience;
  const auto busy = [this] {
    return context_->admission.inside() > 0 || context_->admission.waiting() > 0 ||
           context_->reading.load(std::memory_order_relaxed) > 0;
  };
  while (busy() && std::chrono::steady_clock::now() < until && !impatient()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return !busy();
}

void Frontend::Stop() {
  if (intake_) intake_->Stop();
  for (const auto& loop : loops_) loop->Stop();
  control_.Stop();
  threads_.clear();  // joins
  if (context_) context_->side_work.Stop();
  resolver_->Stop();
  if (name_resolver_) name_resolver_->Stop();
}

}  // namespace fathom
