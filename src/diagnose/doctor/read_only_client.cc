#include "diagnose/doctor/read_only_client.h"

#include <algorithm>
#include <array>

#include "base/peer_text.h"

namespace fathom {
namespace {

using When = ReadOnlyRequest::When;

// GET /health_generate is not here: it makes the engine run a token.
constexpr std::array kRequests = {
    ReadOnlyRequest{ServerKind::kRouter, "GET", "/live", When::kAlways},
    ReadOnlyRequest{ServerKind::kRouter, "GET", "/ready", When::kAlways},
    ReadOnlyRequest{ServerKind::kRouter, "GET", "/health", When::kAlways},
    ReadOnlyRequest{ServerKind::kRouter, "GET", "/metrics", When::kAlways},
    ReadOnlyRequest{ServerKind::kRouter, "GET", "/debug/decisions", When::kAlways},
    ReadOnlyRequest{ServerKind::kRouter, "GET", "/debug/index", When::kAlways},
    ReadOnlyRequest{ServerKind::kRouter, "GET", "/v1/models", When::kAlways},
    ReadOnlyRequest{ServerKind::kRouter, "GET", "/workers", When::kAlways},
    ReadOnlyRequest{ServerKind::kEngine, "GET", "/v1/models", When::kAlways},
    ReadOnlyRequest{ServerKind::kEngine, "GET", "/version", When::kAlways},
    ReadOnlyRequest{ServerKind::kEngine, "GET", "/kv_event_sources", When::kAlways},
    ReadOnlyRequest{ServerKind::kEngine, "GET", "/server_info", When::kAlways},
    ReadOnlyRequest{ServerKind::kEngine, "GET", "/get_server_info", When::kAlways},
    ReadOnlyRequest{ServerKind::kEngine, "GET", "/v1/loads", When::kAlways},
    ReadOnlyRequest{ServerKind::kEngine, "GET", "/prometheus/metrics", When::kAlways},
    ReadOnlyRequest{ServerKind::kEngine, "POST", "/tokenize", When::kAlways},
    ReadOnlyRequest{ServerKind::kEngine, "GET", "/health", When::kRunsNothing},
    ReadOnlyRequest{ServerKind::kEngine, "GET", "/metrics", When::kDrainsNothing},
    ReadOnlyRequest{ServerKind::kEngine, "POST", "/kv_cache_events", When::kMayDrain},
    ReadOnlyRequest{ServerKind::kDynamo, "GET", "/health", When::kAlways},
    ReadOnlyRequest{ServerKind::kDynamo, "GET", "/live", When::kAlways},
    ReadOnlyRequest{ServerKind::kDynamo, "GET", "/metrics", When::kAlways},
    ReadOnlyRequest{ServerKind::kDynamo, "GET", "/v1/models", When::kAlways},
    ReadOnlyRequest{ServerKind::kExporter, "GET", "/metrics", When::kAlways},
};

bool Holds(When when, EngineKind engine, bool drain) {
  switch (when) {
    case When::kAlways:
      return true;
    case When::kDrainsNothing:
      return drain || engine == EngineKind::kVllm || engine == EngineKind::kSglang;
    case When::kRunsNothing:
      return engine == EngineKind::kVllm || engine == EngineKind::kTrtllm;
    case When::kMayDrain:
      return drain;
  }
  return false;
}

}  // namespace

std::span<const ReadOnlyRequest> ReadOnlyRequests() { return kRequests; }

void SentRequests::Count(std::string_view method, const std::string& target) {
  std::pair<std::string, std::string> key(method, target);
  if (times_.size() >= kMost && !times_.contains(key)) key = {"GET or POST", "(others)"};
  ++times_[std::move(key)];
}

std::vector<SentRequest> SentRequests::All() const {
  std::vector<SentRequest> all;
  all.reserve(times_.size());
  for (const auto& [request, times] : times_) {
    all.push_back({.method = request.first, .target = request.second, .times = times});
  }
  return all;
}

Result<void> ReadOnlyClient::Check(std::string_view method, std::string_view path) const {
  const std::string_view bare = path.substr(0, path.find('?'));
  const auto listed = std::ranges::find_if(kRequests, [&](const ReadOnlyRequest& request) {
    return request.server == target_.server && request.method == method && request.path == bare;
  });
  if (listed == kRequests.end()) {
    return Fail(Blame::kCaller, "{} {} is not read-only and is not sent", method, Shown(path));
  }
  if (Holds(listed->when, engine_, target_.drain)) return {};
  if (listed->when == When::kRunsNothing) {
    return Fail(Blame::kCaller, "{} is not requested: SGLang generates a token for it", bare);
  }
  return Fail(Blame::kCaller,
              "{} is not requested: TensorRT-LLM returns each event only once, and a router may "
              "need it (--drain requests it anyway)",
              bare);
}

Task<Result<FetchAnswer>> ReadOnlyClient::Get(std::string path) {
  auto sending = Send("GET", std::move(path), "");
  auto answer = co_await sending;
  co_return std::move(answer);
}

Task<Result<FetchAnswer>> ReadOnlyClient::Ask(std::string path, std::string body) {
  auto sending = Send("POST", std::move(path), std::move(body));
  auto answer = co_await sending;
  co_return std::move(answer);
}

Task<Result<FetchAnswer>> ReadOnlyClient::Send(std::string_view method, std::string path,
                                               std::string body) {
  auto allowed = Check(method, path);
  if (!allowed) co_return std::unexpected(std::move(allowed).error());
  sent_.Count(method, url() + path);
  FetchRequest request;
  request.method = method;
  request.path = std::move(path);
  request.body = body;
  request.max_answer = kMaxAnswer;
  if (!body.empty()) request.headers.emplace_back("content-type", "application/json");
  if (!target_.key.empty()) request.headers.emplace_back("authorization", "Bearer " + target_.key);
  const TimePoint deadline = loop_.now() + target_.patience;
  auto fetching = Fetch(loop_, resolver_, target_.endpoint, request, deadline);
  auto answer = co_await fetching;
  co_return std::move(answer);
}

Result<Endpoint> EndpointOf(const std::string& url, const std::string& ca_file) {
  Endpoint endpoint;
  TRY(endpoint.url, Url::Parse(url));
  if (endpoint.url.tls()) {
    TRY(endpoint.tls, TlsClientContext::Create(ca_file));
  }
  return endpoint;
}

std::string WhyNot(const Result<FetchAnswer>& answer, std::string_view key_option) {
  if (!answer) return Shown(answer.error().what);
  if (answer->status == 200) return "";
  if (answer->status == 401 || answer->status == 403) {
    return fmt::format("answered {}: a key is required, give one with {}", answer->status,
                       key_option);
  }
  return fmt::format("answered {}", answer->status);
}

}  // namespace fathom
