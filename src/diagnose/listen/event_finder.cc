#include "diagnose/listen/event_finder.h"

#include "codec/json.h"

namespace fathom {
namespace {

constexpr Duration kPatience = std::chrono::seconds(10);
constexpr size_t kLargestPoll = size_t{256} << 20;
constexpr std::string_view kPollPath = "/kv_cache_events";

void AddKey(FetchRequest& request, const std::string& api_key) {
  if (!api_key.empty()) request.headers.emplace_back("authorization", "Bearer " + api_key);
}

Task<Result<FetchAnswer>> Get(Loop& loop, Resolver& resolver, const Endpoint& endpoint,
                              std::string api_key, std::string path) {
  FetchRequest request;
  request.path = std::move(path);
  AddKey(request, api_key);
  const TimePoint deadline = loop.now() + kPatience;
  auto asking = Fetch(loop, resolver, endpoint, request, deadline);
  auto answer = co_await asking;
  if (answer && (answer->status == 401 || answer->status == 403)) {
    co_return Fail(Blame::kPeer,
                   "{} answered {}: the worker requires a key, give it with --api-key",
                   request.path, answer->status);
  }
  co_return std::move(answer);
}

// An engine that answered and publishes nothing is the end of the search.
Result<FoundEvents> Conclude(EventSources found, std::string_view who) {
  if (found.sources.empty()) return Fail(Blame::kPeer, "{}", found.problem);
  FoundEvents events;
  events.note = fmt::format("{} reports where its events are", who);
  events.sources = std::move(found.sources);
  return events;
}

FoundEvents Convention(const Endpoint& endpoint) {
  FoundEvents events;
  EventSource source;
  source.endpoint = WithHost(fmt::format("tcp://*:{}", kDefaultEventPort), endpoint.url.host);
  events.note = fmt::format(
      "the engine does not report where its events are; trying {}, where vLLM's first rank "
      "publishes by convention (TensorRT-LLM is polled with --drain)",
      source.endpoint);
  events.sources.push_back(std::move(source));
  return events;
}

bool IsArray(const std::string& body) {
  const auto json = Json::Parse(body);
  return json && json->array() != nullptr;
}

Task<Result<FoundEvents>> TryPolling(Loop& loop, Resolver& resolver, const Endpoint& endpoint,
                                     std::string api_key) {
  auto polling = PollEvents(loop, resolver, endpoint, std::move(api_key));
  auto polled = co_await polling;
  if (!polled) co_return std::unexpected(std::move(polled).error());
  if (polled->status != 200 || !IsArray(polled->body)) co_return Convention(endpoint);
  FoundEvents events;
  events.polled = true;
  events.first_answer = std::move(polled->body);
  events.note = "the engine is TensorRT-LLM and is polled";
  co_return std::move(events);
}

// A route that only takes POST answers a GET with 405, and nothing is drained.
Task<Result<FoundEvents>> LookForPolling(Loop& loop, Resolver& resolver, const Endpoint& endpoint,
                                         std::string api_key) {
  auto asking = Get(loop, resolver, endpoint, std::move(api_key), std::string(kPollPath));
  const auto answer = co_await asking;
  if (answer && answer->status == 405) {
    co_return Fail(Blame::kPeer,
                   "the engine is TensorRT-LLM, which returns each event once: polling here takes "
                   "events away from a router that polls it too; to poll anyway, use --drain");
  }
  co_return Convention(endpoint);
}

}  // namespace

Task<Result<FetchAnswer>> PollEvents(Loop& loop, Resolver& resolver, const Endpoint& endpoint,
                                     std::string api_key) {
  FetchRequest request;
  request.method = "POST";
  request.path = kPollPath;
  request.max_answer = kLargestPoll;
  AddKey(request, api_key);
  const TimePoint deadline = loop.now() + kPatience;
  auto asking = Fetch(loop, resolver, endpoint, request, deadline);
  auto answer = co_await asking;
  co_return std::move(answer);
}

Task<Result<FoundEvents>> FindEvents(Loop& loop, Resolver& resolver, const Endpoint& endpoint,
                                     std::string api_key, bool drain) {
  auto asking_vllm = Get(loop, resolver, endpoint, api_key, "/kv_event_sources");
  auto vllm = co_await asking_vllm;
  if (!vllm) co_return std::unexpected(std::move(vllm).error());
  if (vllm->status == 200) {
    auto found = ParseKvEventSources(vllm->body, endpoint.url.host);
    if (!found) co_return std::unexpected(std::move(found).error());
    co_return Conclude(*std::move(found), "vLLM");
  }
  for (const std::string_view path : {"/server_info", "/get_server_info"}) {
    auto asking_sglang = Get(loop, resolver, endpoint, api_key, std::string(path));
    const auto sglang = co_await asking_sglang;
    if (!sglang || sglang->status != 200) continue;
    auto found = ParseServerInfo(sglang->body, endpoint.url.host);
    if (found) co_return Conclude(*std::move(found), "SGLang");
  }
  if (drain) {
    auto polling = TryPolling(loop, resolver, endpoint, std::move(api_key));
    auto polled = co_await polling;
    co_return std::move(polled);
  }
  auto looking = LookForPolling(loop, resolver, endpoint, std::move(api_key));
  auto looked = co_await looking;
  co_return std::move(looked);
}

}  // namespace fathom
