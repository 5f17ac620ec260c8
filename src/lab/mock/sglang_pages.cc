// SGLang 0.5.23, as far as a router looks at it.
#include <fmt/format.h>

#include "codec/json.h"
#include "lab/mock/face.h"
#include "lab/mock/visit.h"

namespace fathom {
namespace {

constexpr std::string_view kSglangVersion = "0.5.23";

double HitRate(const EngineCounters& all) {
  if (all.prompt_tokens == 0) return 0;
  return static_cast<double>(all.cached_tokens) / static_cast<double>(all.prompt_tokens);
}

void AddSglangRank(Exposition& out, const MockOptions& options, const EngineRanks& ranks,
                   size_t rank) {
  const EngineDriver& driver = ranks.at(rank);
  const EngineStatistics now = driver.statistics();
  const BlockPool& pool = driver.core().pool();
  const uint64_t page = driver.core().options().block_size;
  const uint32_t reported = ReportedBlockSize(options, driver);
  const uint64_t used = (pool.usable_blocks() - pool.free_blocks()) * page;
  Labels of = {{"engine_type", "unified"}, {"model_name", options.models.front()}};
  const Labels process = of;
  of.insert(of.end(), {{"pp_rank", "0"}, {"tp_rank", "0"}});
  if (ranks.size() > 1) of.emplace_back("dp_rank", fmt::format("{}", rank));
  const auto gauge = [&](std::string_view name, std::string_view help, double value) {
    out.AddGauge(name, help, of, value);
  };
  gauge("sglang:num_running_reqs", "The number of running requests.",
        static_cast<double>(now.running));
  gauge("sglang:num_queue_reqs", "The number of requests in the waiting queue.",
        static_cast<double>(now.waiting));
  gauge("sglang:token_usage", "The token usage.", now.cache_usage);
  gauge("sglang:full_token_usage", "The token usage for full attention layers.", now.cache_usage);
  gauge("sglang:cache_hit_rate", "The prefix cache hit rate.", HitRate(now.counters));
  gauge("sglang:max_total_num_tokens", "Maximum total number of tokens in the KV cache pool.",
        static_cast<double>(driver.core().capacity_tokens()));
  if (reported > 0) {
    gauge("sglang:page_size", "The page size of the KV cache.", reported);
    gauge("sglang:num_pages", "The number of pages.", static_cast<double>(pool.usable_blocks()));
  }
  gauge("sglang:context_len", "The context length.", static_cast<double>(MaxModelLength(options)));
  gauge("sglang:kv_used_tokens", "Tokens in use.", static_cast<double>(used));
  gauge("sglang:kv_available_tokens", "Tokens free and not cached.",
        static_cast<double>(driver.core().capacity_tokens() - used));
  gauge("sglang:num_retracted_reqs", "Retracted requests.",
        static_cast<double>(now.counters.preemptions));
}

Answer SglangMetrics(const MockOptions& options, const EngineRanks& ranks) {
  Exposition out;
  for (size_t rank = 0; rank < ranks.size(); ++rank) AddSglangRank(out, options, ranks, rank);
  const EngineCounters all = ranks.Statistics().counters;
  const Labels of = {{"engine_type", "unified"}, {"model_name", options.models.front()}};
  out.AddCounter("sglang:prompt_tokens_total", "Number of prefill tokens processed.", of,
                 static_cast<double>(all.prompt_tokens));
  out.AddCounter("sglang:generation_tokens_total", "Number of generation tokens processed.", of,
                 static_cast<double>(all.generated_tokens));
  out.AddCounter("sglang:cached_tokens_total", "Number of cached prompt tokens.", of,
                 static_cast<double>(all.cached_tokens));
  AddMockCounters(out, options, ranks);
  return MetricsAnswer(out);
}

// Of the endpoint: tcp://HOST:PORT.
std::string_view EventHost(const EventFeed& feed) {
  if (!feed.places(0).dial) return "*";
  std::string_view host = feed.places(0).publish;
  host = host.substr(0, host.rfind(':'));
  return host.substr(host.rfind('/') + 1);
}

// As it would have been given to the engine, in a string.
std::string EventsConfig(const EventFeed& feed) {
  const EventPlaces& places = feed.places(0);
  JsonWriter w;
  w.BeginObject().Key("publisher").String("zmq").Key("endpoint");
  w.String(places.dial ? places.publish : fmt::format("tcp://*:{}", feed.port(0)));
  if (places.replay) {
    w.Key("replay_endpoint").String(fmt::format("tcp://*:{}", feed.replay_port(0)));
  }
  w.Key("topic").String(feed.options().topic).EndObject();
  return w.Take();
}

void AddEvents(JsonWriter& w, const MockOptions& options, const EngineRanks& ranks) {
  const EventFeed* const feed = ranks.feed();
  if (feed == nullptr) {
    w.Key("kv_events_config").Null().Key("kv_events").Null();
    return;
  }
  w.Key("kv_events_config").String(EventsConfig(*feed)).Key("kv_events").BeginObject();
  w.Key("publisher").String("zmq").Key("endpoint_host").String(EventHost(*feed));
  w.Key("endpoint_port_base").Unsigned(feed->port(0)).Key("topic").String(feed->options().topic);
  const uint32_t block_size = ReportedBlockSize(options, ranks.at(0));
  if (block_size > 0) w.Key("block_size").Unsigned(block_size);
  w.Key("dp_size").Unsigned(ranks.size());
  w.Key("replay_endpoint_port_base");
  if (feed->places(0).replay) {
    w.Unsigned(feed->replay_port(0));
  } else {
    w.Null();
  }
  w.EndObject();
}

std::string SglangServerInfo(const MockOptions& options, const EngineRanks& ranks) {
  const uint32_t page = ReportedBlockSize(options, ranks.at(0));
  JsonWriter w;
  w.BeginObject().Key("model_path").String(options.models.front());
  w.Key("served_model_name").String(options.models.front()).Key("page_size");
  page == 0 ? w.Null() : w.Unsigned(page);
  w.Key("max_total_num_tokens").Unsigned(ranks.at(0).core().capacity_tokens());
  w.Key("context_length").Unsigned(MaxModelLength(options));
  w.Key("max_running_requests").Unsigned(options.max_num_seqs);
  w.Key("dp_size").Unsigned(ranks.size());
  if (const auto caches = ReportedPrefixCaching(options, false)) {
    w.Key("disable_radix_cache").Bool(!*caches);
  }
  AddEvents(w, options, ranks);
  w.Key("reasoning_parser");
  options.reasoning_parser.empty() ? w.Null() : w.String(options.reasoning_parser);
  w.Key("speculative_algorithm").Null();
  w.Key("version").String(kSglangVersion).EndObject();
  return w.Take();
}

std::string ModelInfo(const MockOptions& options) {
  JsonWriter w;
  w.BeginObject().Key("model_path").String(options.models.front());
  w.Key("served_model_name").String(options.models.front());
  w.Key("tokenizer_path").String(options.models.front()).Key("is_generation").Bool(true);
  w.EndObject();
  return w.Take();
}

std::string Loads(const MockOptions& options, const EngineRanks& ranks) {
  JsonWriter w;
  w.BeginObject().Key("version").String(kSglangVersion).Key("loads").BeginArray();
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const EngineDriver& driver = ranks.at(rank);
    const EngineStatistics now = driver.statistics();
    const uint64_t capacity = driver.core().capacity_tokens();
    w.BeginObject().Key("dp_rank").Unsigned(rank).Key("num_running_reqs").Unsigned(now.running);
    w.Key("num_waiting_reqs").Unsigned(now.waiting);
    w.Key("num_used_tokens")
        .Unsigned(static_cast<uint64_t>(now.cache_usage * static_cast<double>(capacity)));
    w.Key("max_total_num_tokens").Unsigned(capacity);
    w.Key("max_running_requests").Unsigned(options.max_num_seqs);
    w.Key("token_usage").Number(now.cache_usage);
    w.Key("cache_hit_rate").Number(HitRate(now.counters)).EndObject();
  }
  w.EndArray().EndObject();
  return w.Take();
}

Answer FlushCache(EngineRanks& ranks) {
  if (!ranks.ResetPrefixCache()) {
    return {.status = 400,
            .content_type = "text/plain; charset=utf-8",
            .body = "Flush cache failed.\n",
            .headers = {}};
  }
  return {.content_type = "text/plain; charset=utf-8",
          .body =
              "Cache flushed.\nPlease check backend logs for more details. (When there are "
              "running or waiting requests, the operation will not be performed.)\n",
          .headers = {}};
}

}  // namespace

std::optional<Answer> SglangPage(const PageRequest& request, const MockOptions& options,
                                 EngineRanks* ranks) {
  if (request.Is("POST", "/tokenize") || request.Is("POST", "/v1/tokenize")) {
    return TokenizePage(request, options);
  }
  if (request.Is("POST", "/detokenize") || request.Is("POST", "/v1/detokenize")) {
    return DetokenizePage(request, "text", options);
  }
  if (request.Is("GET", "/model_info") || request.Is("GET", "/get_model_info")) {
    return JsonAnswer(200, ModelInfo(options));
  }
  if (ranks == nullptr) return std::nullopt;
  if (request.Is("GET", "/server_info") || request.Is("GET", "/get_server_info")) {
    return JsonAnswer(200, SglangServerInfo(options, *ranks));
  }
  if (request.Is("GET", "/metrics")) return SglangMetrics(options, *ranks);
  if (request.Is("GET", "/v1/loads")) return JsonAnswer(200, Loads(options, *ranks));
  if (request.path == "/flush_cache") return FlushCache(*ranks);
  return std::nullopt;
}

}  // namespace fathom
