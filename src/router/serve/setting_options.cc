#include "router/serve/setting_options.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "base/secret.h"

namespace fathom {
namespace {

size_t TokenizeThreadsOf(const Settings& settings) {
  const int64_t asked = settings.Integer("tokenize-threads");
  if (asked > 0) return static_cast<size_t>(asked);
  return std::clamp<size_t>(std::thread::hardware_concurrency() / 2, 1, 4);
}

// "flag --kv-cache-block-size" and "environment DYN_KV_CACHE_BLOCK_SIZE" name the setting itself, a
// line of the YAML file the place of its key.
SizeSetting SizeSettingOf(const Settings& s) {
  constexpr std::string_view kOption = "kv-cache-block-size";
  std::string_view origin = s.OriginOf(kOption);
  for (const std::string_view kind : {"flag ", "environment "}) {
    if (origin.starts_with(kind)) return {std::string(origin.substr(kind.size())), {}};
  }
  if (origin == "default") return {};
  return {std::string(kOption), std::string(origin)};
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
  // 0 turns the credit off; as a prefill scale, 0 would leave only decoding to choose by.
  const double weight = s.Number(kOlder);
  weight == 0 ? w.overlap_credit = 0 : w.prefill_scale = weight;
  return w;
}

Result<std::vector<AddressRange>> BindAllowed(const Settings& s) {
  std::vector<AddressRange> allowed;
  for (const std::string& network : s.List("kv-events-bind-allow")) {
    auto range = AddressRange::Parse(network);
    if (!range) return std::unexpected(std::move(range).error().In("kv-events-bind-allow"));
    allowed.push_back(*range);
  }
  return allowed;
}

SteeringOptions SteeringOptionsOf(const Settings& s) {
  SteeringOptions o;
  o.mode = *ParseRouterMode(s.Choice("router-mode"));
  o.events = FollowsEvents(s);
  o.weights = WeightsOf(s);
  o.belief_outlives = s.Time("router-belief-ttl");
  o.approximate_ttl = s.Time("router-ttl");
  o.approximate_bytes = s.Bytes("index-max-bytes");
  o.by_text = s.Flag("text-fallback");
  o.text_ttl = s.Time("router-ttl");
  o.text_bytes = std::min(o.text_bytes, s.Bytes("index-max-bytes"));
  o.prefix_tokens = static_cast<size_t>(s.Integer("router-prefix-hash-tokens"));
  o.prefix_bound = s.Number("router-prefix-hash-bound");
  o.queue_threshold = s.Number("router-queue-threshold");
  o.decisions_kept = static_cast<size_t>(s.Integer("decisions-kept"));
  o.several = !s.Text("replicas").empty();
  return o;
}

}  // namespace

uint64_t SeedOf(const Settings& settings) {
  const int64_t seed = settings.Integer("seed");
  return seed != 0 ? static_cast<uint64_t>(seed) : RandomSecret();
}

size_t ThreadsOf(const Settings& settings) {
  const int64_t asked = settings.Integer("threads");
  if (asked > 0) return static_cast<size_t>(asked);
  return std::max(1u, std::thread::hardware_concurrency());
}

bool FollowsEvents(const Settings& s) {
  return s.Choice("kv-events") == "on" && s.Flag("router-kv-events");
}

bool UsesPrompts(const Settings& s) {
  return s.Choice("router-mode") == "kv" || s.Choice("router-mode") == "prefix-hash";
}

bool NeedsBlockSizes(const Settings& s) {
  return FollowsEvents(s) && s.Choice("router-mode") == "kv";
}

Result<BlockSizeRules> BlockSizeRulesOf(const Settings& s) {
  BlockSizeRules rules;
  rules.configured = static_cast<uint32_t>(s.Integer("kv-cache-block-size"));
  rules.mixed = s.Choice("block-size-conflict") == "mixed";
  rules.wait = s.Time("block-size-wait");
  rules.setting = SizeSettingOf(s);
  if (rules.configured != 0 && rules.mixed) {
    return Fail(
        Blame::kCaller,
        "kv-cache-block-size {} (from {}) and block-size-conflict mixed cannot be combined: "
        "remove kv-cache-block-size, block sizes are detected",
        rules.configured, s.OriginOf("kv-cache-block-size"));
  }
  return rules;
}

GatewayOptions GatewayOptionsOf(const Settings& s) {
  GatewayOptions o;
  o.steering = SteeringOptionsOf(s);
  o.session_ttl = s.Time("session-affinity-ttl");
  o.session_hints = ParseSessionHints(s.List("session-hints")).value();
  o.max_in_flight = static_cast<uint32_t>(s.Integer("max-in-flight"));
  o.max_waiting = static_cast<uint32_t>(s.Integer("max-waiting"));
  o.queue_timeout = s.Time("queue-timeout");
  o.connect_timeout = s.Time("connect-timeout");
  o.first_byte_timeout = s.Time("first-byte-timeout");
  o.idle_timeout = s.Time("idle-timeout");
  o.request_timeout = s.Time("request-timeout");
  o.silent_stream_grace = s.Time("silent-stream-grace");
  o.max_head = s.Bytes("max-head-size");
  o.pool_size = static_cast<size_t>(s.Integer("pool-size"));
  o.pool_idle_timeout = s.Time("upstream-keep-alive-timeout");
  o.retry_attempts = static_cast<uint32_t>(s.Integer("retry-attempts"));
  o.retry_budget = s.Number("retry-budget");
  o.retry_answer_bytes = s.Bytes("retry-answer-size");
  o.pass_routes = s.List("pass-routes");
  o.allow_transfer_fields = s.Flag("allow-transfer-fields");
  o.metrics_urls = s.Flag("metrics-urls");
  o.log_requests = s.Flag("log-requests");
  o.log_selections = s.Flag("log-selections");
  o.routing_headers = s.Flag("routing-headers");
  o.dispatch_timeout = s.Time("router-queue-timeout");
  // Longer than --block-size-wait, so that requests are not refused just before it ends.
  o.fleet_wait = s.Time("block-size-wait") + std::chrono::seconds(1);
  o.replay_wait = s.Time("kv-events-replay-wait");
  o.tokenize_timeout = s.Time("tokenize-timeout");
  o.tokenize_cache_bytes = s.Bytes("tokenize-cache-bytes");
  o.tokenize_threads = TokenizeThreadsOf(s);
  o.prompt_bytes = s.Bytes("max-body-memory");
  o.forward_tokens = s.Flag("forward-tokens");
  o.literal_user_text = s.Flag("literal-user-text");
  o.ask_usage = s.Flag("ask-usage");
  o.ready_when_trusted = s.Choice("ready-when") == "trusted";
  o.ready_when_informed = s.Choice("ready-when") == "informed";
  o.replay_timeout = s.Time("kv-events-replay-timeout");
  return o;
}

ServerOptions ServerOptionsOf(const Settings& s) {
  ServerOptions o;
  o.max_head = s.Bytes("max-head-size");
  o.max_body = s.Bytes("max-body-size");
  o.body_budget = std::make_shared<RequestMemory>(s.Bytes("max-body-memory"));
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

Result<IntakeOptions> IntakeOptionsOf(const Settings& s) {
  IntakeOptions o;
  o.port = static_cast<uint16_t>(s.Integer("kv-events-port"));
  o.bind = s.Text("kv-events-bind");
  TRY(o.bind_allow, BindAllowed(s));
  o.bind_key = s.Secret("kv-events-bind-key");
  if (o.bind_key.size() > 255) {
    return Fail(Blame::kCaller, "kv-events-bind-key has {} bytes; at most 255 are possible",
                o.bind_key.size());
  }
  o.memory = s.Bytes("kv-events-memory");
  o.replay_timeout = s.Time("kv-events-replay-timeout");
  o.poll_interval = s.Time("kv-events-poll-interval");
  return o;
}

Result<ResolverOptions> ResolverOptionsOf(const Settings& s, Log& log) {
  auto servers = ParseNameServers(s.List("dns-servers"));
  if (!servers) return std::unexpected(std::move(servers).error().In("dns-servers"));
  return ResolverOptions{.servers = *std::move(servers), .log = &log};
}

Result<ModelSlice> SliceOf(const Settings& s) {
  auto slice = ModelSlice::Of(s.List("models"));
  if (!slice) return std::unexpected(std::move(slice).error().In("models"));
  return slice;
}

}  // namespace fathom
