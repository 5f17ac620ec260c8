#include "router/events/event_source.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "codec/event_endpoint.h"
#include "codec/json.h"
#include "engine/publisher_flags.h"

namespace fathom {
namespace {

constexpr uint64_t kMaxPort = 65535;

bool IsWildcard(std::string_view host) {
  return host == "*" || host == "0.0.0.0" || host == "::" || host == "[::]";
}

std::string Bracketed(std::string_view host) {
  const bool bare = host.find(':') != std::string_view::npos && !host.starts_with('[');
  return bare ? fmt::format("[{}]", host) : std::string(host);
}

std::string TcpText(std::string_view host, uint64_t port) {
  return fmt::format("tcp://{}:{}", Bracketed(host), port);
}

// An operator sees this text of a peer: control characters are replaced and the length is limited.
std::string Shown(std::string_view text) {
  std::string shown(text.substr(0, 80));
  const auto odd = [](unsigned char c) { return c < 0x20 || c >= 0x7f; };
  std::ranges::replace_if(shown, odd, '?');
  return shown;
}

Result<void> CheckEndpoint(std::string_view endpoint) {
  auto checked = CheckEventEndpoint(endpoint);
  if (!checked) return Fail(Blame::kPeer, "{}", checked.error().what);
  return {};
}

bool DialsOut(std::string_view endpoint) {
  const auto tcp = TcpEventEndpoint::Parse(endpoint);
  return tcp && !IsWildcard(tcp->host);
}

Result<Json> ParseObject(std::string_view body) {
  auto json = Json::Parse(body);
  if (!json) return Fail(Blame::kPeer, "{}", json.error().what);
  if (json->object() == nullptr) return Fail(Blame::kPeer, "not a JSON object");
  return json;
}

bool IsNothing(const Json* json) { return json == nullptr || json->is_null(); }

// A missing or null member gives an empty string.
Result<std::string> TextMember(const Json& object, std::string_view key) {
  const Json* const member = object.Find(key);
  if (IsNothing(member)) return std::string();
  if (member->string() == nullptr) return Fail(Blame::kPeer, "{} is not a string", key);
  return *member->string();
}

// A missing or null member gives `fallback`.
Result<uint64_t> NumberMember(const Json& object, std::string_view key, uint64_t fallback,
                              uint64_t most) {
  const Json* const member = object.Find(key);
  if (IsNothing(member)) return fallback;
  const auto number = member->unsigned_integer();
  if (number && *number >= 1 && *number <= most) return *number;
  return Fail(Blame::kPeer, "{} is not a number from 1 to {}", key, most);
}

Result<uint32_t> RankOf(std::string_view key) {
  const auto rank = ParseDecimal(key);
  if (rank && *rank < kMaxEventRanks) return static_cast<uint32_t>(*rank);
  return Fail(Blame::kPeer, "'{}' is not a rank from 0 to {}", Shown(key), kMaxEventRanks - 1);
}

std::string VllmIsSilent() {
  return fmt::format("vLLM's KV events are off; start it with {}", kVllmPublisherFlags);
}

// Empty: the engine publishes.
std::string WhyVllmIsSilent(const Json& entry) {
  const Json* const enabled = entry.Find("enable_kv_cache_events");
  if (enabled != nullptr && enabled->boolean() != nullptr && !*enabled->boolean()) {
    return VllmIsSilent();
  }
  const auto publisher = TextMember(entry, "publisher");
  if (publisher && !publisher->empty() && *publisher != "zmq") {
    return fmt::format(
        "vLLM publishes KV events through '{}'; set \"publisher\": \"zmq\" in its "
        "--kv-events-config",
        Shown(*publisher));
  }
  return {};
}

Result<EventSource> SourceOf(uint32_t rank, const std::string& endpoint, const std::string& replay,
                             const std::string& topic, std::string_view worker_host) {
  TRY_VOID(CheckEndpoint(endpoint));
  if (!replay.empty()) TRY_VOID(CheckEndpoint(replay));
  return EventSource{.rank = rank,
                     .endpoint = WithHost(endpoint, worker_host),
                     .replay = WithHost(replay, worker_host),
                     .topic = topic,
                     .dials_out = DialsOut(endpoint)};
}

Result<EventSource> ReadVllmRank(uint32_t rank, const Json& entry, std::string_view worker_host) {
  TRY(const std::string endpoint, TextMember(entry, "endpoint"));
  TRY(const std::string replay, TextMember(entry, "replay_endpoint"));
  TRY(const std::string topic, TextMember(entry, "topic"));
  return SourceOf(rank, endpoint, replay, topic, worker_host);
}

Result<void> AddVllmRank(EventSources& found, std::string_view key, const Json& entry,
                         std::string_view worker_host) {
  TRY(const uint32_t rank, RankOf(key));
  if (entry.object() == nullptr) return Fail(Blame::kPeer, "rank {} is not an object", rank);
  if (std::string why = WhyVllmIsSilent(entry); !why.empty()) {
    found.problem = std::move(why);
    found.off = true;
    return {};
  }
  auto source = ReadVllmRank(rank, entry, worker_host);
  if (!source) return std::unexpected(std::move(source).error().In(fmt::format("rank {}", rank)));
  found.sources.push_back(*std::move(source));
  return {};
}

// SGLang's --kv-events-config, which /server_info returns as a string.
struct SglangConfig {
  std::string publisher;
  std::string endpoint;
  std::string replay;
  std::string topic;
};

Result<SglangConfig> ReadSglangConfig(const Json& info) {
  SglangConfig config;
  TRY(const std::string text, TextMember(info, "kv_events_config"));
  if (text.empty()) return config;
  TRY(const Json json, ParseObject(text));
  TRY(config.publisher, TextMember(json, "publisher"));
  TRY(config.endpoint, TextMember(json, "endpoint"));
  TRY(config.replay, TextMember(json, "replay_endpoint"));
  TRY(config.topic, TextMember(json, "topic"));
  return config;
}

// Rank 0's endpoints; the other ranks use the following ports.
struct SglangBase {
  std::string endpoint;
  std::string replay;
  std::string topic;
  uint64_t ranks = 1;
};

Result<std::string> BaseEndpoint(const Json& told, std::string_view host, std::string_view key) {
  TRY(const uint64_t port, NumberMember(told, key, 0, kMaxPort));
  return port == 0 ? std::string() : TcpText(host, port);
}

Result<SglangBase> ReadTold(const Json& info, const Json& told) {
  if (told.object() == nullptr) return Fail(Blame::kPeer, "kv_events is not an object");
  SglangBase base;
  TRY(std::string host, TextMember(told, "endpoint_host"));
  if (host.empty()) host = "*";
  TRY(base.endpoint, BaseEndpoint(told, host, "endpoint_port_base"));
  TRY(base.replay, BaseEndpoint(told, host, "replay_endpoint_port_base"));
  TRY(base.topic, TextMember(told, "topic"));
  // Releases before 0.5.23 leave the replay port out here. Without it, only replay is unavailable.
  const auto config = ReadSglangConfig(info);
  if (base.replay.empty() && config) base.replay = config->replay;
  TRY(const uint64_t everywhere, NumberMember(info, "dp_size", 1, kMaxEventRanks));
  TRY(base.ranks, NumberMember(told, "dp_size", everywhere, kMaxEventRanks));
  return base;
}

Result<SglangBase> ReadConfigured(const Json& info, const SglangConfig& config) {
  SglangBase base{.endpoint = config.endpoint, .replay = config.replay, .topic = config.topic};
  if (base.endpoint.empty()) base.endpoint = TcpText("*", kDefaultEventPort);
  TRY(base.ranks, NumberMember(info, "dp_size", 1, kMaxEventRanks));
  return base;
}

Result<EventSources> SpreadOverRanks(const SglangBase& base, std::string_view worker_host) {
  EventSources found;
  for (uint32_t rank = 0; rank < base.ranks; ++rank) {
    TRY(const std::string endpoint, WithPortOffset(base.endpoint, rank));
    std::string replay;
    if (!base.replay.empty()) {
      TRY(replay, WithPortOffset(base.replay, rank));
    }
    TRY(EventSource source, SourceOf(rank, endpoint, replay, base.topic, worker_host));
    found.sources.push_back(std::move(source));
  }
  return found;
}

EventSources SglangIsSilent() {
  return {
      .sources = {},
      .problem = fmt::format("SGLang's KV events are off; start it with {}", kSglangPublisherFlags),
      .off = true};
}

Result<EventSources> ReadServerInfo(const Json& info, std::string_view worker_host) {
  const Json* const told = info.Find("kv_events");
  if (told == nullptr && info.Find("kv_events_config") == nullptr) {
    return Fail(Blame::kPeer, "reports nothing about KV events");
  }
  if (!IsNothing(told)) {
    TRY(const std::string publisher, TextMember(*told, "publisher"));
    if (!publisher.empty() && publisher != "zmq") return SglangIsSilent();
    TRY(const SglangBase base, ReadTold(info, *told));
    return SpreadOverRanks(base, worker_host);
  }
  TRY(const SglangConfig config, ReadSglangConfig(info));
  if (config.publisher != "zmq") return SglangIsSilent();
  TRY(const SglangBase base, ReadConfigured(info, config));
  return SpreadOverRanks(base, worker_host);
}

}  // namespace

Result<EventSources> ParseKvEventSources(std::string_view body, std::string_view worker_host) {
  EventSources found;
  auto json = ParseObject(body);
  if (!json) return std::unexpected(std::move(json).error().In("/kv_event_sources"));
  for (const auto& [key, entry] : *json->object()) {
    auto added = AddVllmRank(found, key, entry, worker_host);
    if (!added) return std::unexpected(std::move(added).error().In("/kv_event_sources"));
  }
  std::ranges::sort(found.sources, {}, &EventSource::rank);
  const auto twice = std::ranges::adjacent_find(found.sources, {}, &EventSource::rank);
  if (twice != found.sources.end()) {
    return Fail(Blame::kPeer, "/kv_event_sources: rank {} is listed twice", twice->rank);
  }
  if (!found.sources.empty()) found.problem.clear();
  // Since 0.32 an engine without events lists no rank. It answers only after it has started.
  if (json->object()->empty()) {
    found.problem = VllmIsSilent();
    found.off = true;
  }
  return found;
}

Result<EventSources> ParseServerInfo(std::string_view body, std::string_view worker_host) {
  auto json = ParseObject(body);
  if (!json) return std::unexpected(std::move(json).error().In("/server_info"));
  auto found = ReadServerInfo(*json, worker_host);
  if (!found) return std::unexpected(std::move(found).error().In("/server_info"));
  return found;
}

std::string WithHost(std::string endpoint, std::string_view host) {
  const auto tcp = TcpEventEndpoint::Parse(endpoint);
  if (!tcp || !IsWildcard(tcp->host)) return endpoint;
  return TcpText(host, tcp->port);
}

Result<std::string> WithPortOffset(std::string_view endpoint, uint32_t offset) {
  if (offset == 0) return std::string(endpoint);
  const auto tcp = TcpEventEndpoint::Parse(endpoint);
  if (!tcp) {
    return Fail(Blame::kPeer, "'{}' has no port, so rank {} has no endpoint", Shown(endpoint),
                offset);
  }
  const uint64_t port = uint64_t{tcp->port} + offset;
  if (port > kMaxPort) {
    return Fail(Blame::kPeer, "'{}' leaves no port for rank {}", Shown(endpoint), offset);
  }
  return TcpText(tcp->host, port);
}

}  // namespace fathom
