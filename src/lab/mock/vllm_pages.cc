// vLLM 0.32, as far as a router looks at it.
#include <fmt/format.h>

#include <chrono>

#include "codec/json.h"
#include "lab/mock/face.h"
#include "lab/mock/visit.h"

namespace fathom {
namespace {

// Which process this is, for whoever wants to notice a restart.
double ProcessStart() {
  static const double start =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return start;
}

std::string YesNo(bool value) { return value ? "True" : "False"; }

// Values are what Python writes. The number of blocks is that of all ranks, the size in tokens that
// of one.
Labels CacheConfig(const MockOptions& options, const EngineRanks& ranks, size_t rank) {
  const EngineCore& core = ranks.at(rank).core();
  const uint64_t tokens = core.capacity_tokens();
  const uint64_t longest = MaxModelLength(options);
  Labels labels = {
      {"block_size", fmt::format("{}", ReportedBlockSize(options, ranks.at(rank)))},
      {"cache_dtype", "auto"},
      {"enable_prefix_caching", YesNo(options.prefix_caching)},
      {"engine", fmt::format("{}", rank)},
      {"gpu_memory_utilization", "0.92"},
      {"kv_cache_max_concurrency",
       fmt::format("{:.2f}", static_cast<double>(tokens) / static_cast<double>(longest))},
      {"kv_cache_size_tokens", fmt::format("{}", tokens)},
      {"num_cpu_blocks", "None"},
      {"num_gpu_blocks", fmt::format("{}", uint64_t{core.options().num_blocks} * ranks.size())},
      {"num_gpu_blocks_override", "None"},
      {"prefix_caching_hash_algo", "sha256"},
      {"sliding_window", "None"},
      {"user_specified_block_size", YesNo(options.block_size > 0)}};
  if (!ReportedPrefixCaching(options, true)) {
    std::erase_if(labels, [](const auto& label) { return label.first == "enable_prefix_caching"; });
  }
  return labels;
}

void AddVllmRank(Exposition& out, const MockOptions& options, const EngineRanks& ranks,
                 size_t rank) {
  const EngineDriver& driver = ranks.at(rank);
  const EngineStatistics now = driver.statistics();
  const EngineCounters& all = now.counters;
  const Labels of = {{"engine", fmt::format("{}", rank)}, {"model_name", options.models.front()}};
  const auto gauge = [&](std::string_view name, std::string_view help, double value) {
    out.AddGauge(name, help, of, value);
  };
  const auto counter = [&](std::string_view name, std::string_view help, uint64_t value) {
    out.AddCounter(name, help, of, static_cast<double>(value));
  };
  gauge("vllm:num_requests_running", "Number of requests in model execution batches.",
        static_cast<double>(now.running));
  gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.",
        static_cast<double>(now.waiting));
  gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", now.cache_usage);
  counter("vllm:prefix_cache_queries_total", "Prefix cache queries, in tokens.", all.prompt_tokens);
  counter("vllm:prefix_cache_hits_total", "Prefix cache hits, in tokens.", all.cached_tokens);
  counter("vllm:num_preemptions_total", "Number of preemptions.", all.preemptions);
  counter("vllm:prompt_tokens_total", "Number of prefill tokens processed.", all.prompt_tokens);
  counter("vllm:prompt_tokens_cached_total", "Number of cached prompt tokens.", all.cached_tokens);
  counter("vllm:generation_tokens_total", "Number of generation tokens processed.",
          all.generated_tokens);
  out.AddHistogram("vllm:time_to_first_token_seconds", "Time to first token in seconds.", of,
                   driver.first_token_times());
  if (ReportedBlockSize(options, driver) == 0) return;
  out.AddGauge("vllm:cache_config_info", "Information of the LLMEngine CacheConfig",
               CacheConfig(options, ranks, rank), 1);
}

Answer VllmMetrics(const MockOptions& options, const EngineRanks& ranks) {
  Exposition out;
  for (size_t rank = 0; rank < ranks.size(); ++rank) AddVllmRank(out, options, ranks, rank);
  // Several API servers are merged under data parallelism, and this is lost.
  if (ranks.size() == 1) {
    out.AddGauge("process_start_time_seconds",
                 "Start time of the process since unix epoch in seconds.", {}, ProcessStart());
  }
  AddMockCounters(out, options, ranks);
  return MetricsAnswer(out);
}

// The first part of what an engine tells about a rank's events: where they are.
void AddEventPlaces(JsonWriter& w, const EventFeed& feed, size_t rank) {
  const EventPlaces& places = feed.places(rank);
  w.Key("enable_kv_cache_events").Bool(true).Key("publisher").String("zmq").Key("endpoint");
  w.String(places.dial ? places.publish : fmt::format("tcp://*:{}", feed.port(rank)));
  w.Key("replay_endpoint");
  if (places.replay) {
    w.String(fmt::format("tcp://*:{}", feed.replay_port(rank)));
  } else {
    w.Null();
  }
}

// Without events no rank is listed.
std::string EventSources(const EngineRanks& ranks) {
  const EventFeed* const feed = ranks.feed();
  if (feed == nullptr) return "{}";
  const KvEventOptions events = feed->options();
  JsonWriter w;
  w.BeginObject();
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    w.Key(fmt::format("{}", rank)).BeginObject();
    AddEventPlaces(w, *feed, rank);
    w.Key("buffer_steps").Unsigned(events.buffer_steps).Key("hwm").Int(100000);
    w.Key("max_queue_size").Int(100000).Key("topic").String(events.topic).EndObject();
  }
  w.EndObject();
  return w.Take();
}

// The part of the configuration that a router could ask for, as of ?config_format=json.
std::string VllmServerInfo(const MockOptions& options, const EngineRanks& ranks) {
  const uint32_t block_size = ReportedBlockSize(options, ranks.at(0));
  JsonWriter w;
  w.BeginObject().Key("vllm_config").BeginObject();
  w.Key("model_config").BeginObject().Key("model").String(options.models.front());
  w.Key("max_model_len").Unsigned(MaxModelLength(options)).EndObject();
  w.Key("cache_config").BeginObject().Key("block_size");
  block_size == 0 ? w.Null() : w.Unsigned(block_size);
  w.Key("num_gpu_blocks").Unsigned(ranks.at(0).core().options().num_blocks);
  if (const auto caches = ReportedPrefixCaching(options, true)) {
    w.Key("enable_prefix_caching").Bool(*caches);
  }
  w.EndObject().Key("parallel_config").BeginObject();
  w.Key("data_parallel_size").Unsigned(ranks.size()).EndObject().EndObject().EndObject();
  return w.Take();
}

}  // namespace

std::optional<Answer> VllmPage(const PageRequest& request, const MockOptions& options,
                               EngineRanks* ranks) {
  if (request.Is("POST", "/tokenize")) return TokenizePage(request, options);
  if (request.Is("POST", "/detokenize")) return DetokenizePage(request, "prompt", options);
  if (request.Is("GET", "/load")) return JsonAnswer(200, R"({"server_load":0})");
  if (request.Is("GET", "/ping")) return Answer{.content_type = "", .body = {}, .headers = {}};
  if (ranks == nullptr) return std::nullopt;
  if (request.Is("GET", "/metrics")) return VllmMetrics(options, *ranks);
  if (request.Is("GET", "/kv_event_sources")) return JsonAnswer(200, EventSources(*ranks));
  if (request.Is("GET", "/server_info")) return JsonAnswer(200, VllmServerInfo(options, *ranks));
  if (request.Is("POST", "/reset_prefix_cache")) {
    return JsonAnswer(200, fmt::format(R"({{"success":{}}})", ranks->ResetPrefixCache()));
  }
  return std::nullopt;
}

}  // namespace fathom
