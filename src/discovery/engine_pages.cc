#include "discovery/engine_pages.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

#include "base/text.h"
#include "codec/json.h"
#include "codec/prometheus_text.h"

namespace fathom {
namespace {

// Larger than any cache, small enough to be multiplied and added without a thought.
constexpr uint64_t kMostTokens = uint64_t{1} << 48;
constexpr uint32_t kMostPerBlock = 1 << 20;

// --- Numbers that may be anything

std::optional<uint32_t> CountOf(double value) {
  if (!(value >= 0)) return std::nullopt;
  constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();
  return value < kMost ? static_cast<uint32_t>(value) : kMost;
}

uint64_t Tokens(std::optional<uint64_t> value) {
  return value && *value <= kMostTokens ? *value : 0;
}

uint32_t BlockSize(std::optional<uint64_t> value) {
  return value && *value <= kMostPerBlock ? static_cast<uint32_t>(*value) : 0;
}

uint32_t Limit(std::optional<uint64_t> value) {
  return static_cast<uint32_t>(
      std::min<uint64_t>(value.value_or(0), std::numeric_limits<uint32_t>::max()));
}

// Ranks are alike; where they are not, the smallest is the one to reckon with.
template <class T>
void KeepSmallest(T& kept, T value) {
  if (value > 0 && (kept == 0 || value < kept)) kept = value;
}

// The entry of a rank, made if there is none; null for a rank that cannot be.
RankLoadReport* LoadAt(EngineReport& report, uint64_t rank) {
  if (rank >= EngineReport::kMaxRanks) return nullptr;
  const auto wanted = static_cast<uint32_t>(rank);
  const auto at = std::ranges::lower_bound(report.loads, wanted, {}, &RankLoadReport::rank);
  if (at != report.loads.end() && at->rank == wanted) return &*at;
  return &*report.loads.insert(at, RankLoadReport{.rank = wanted});
}

void SetUsage(RankLoadReport& load, double value) {
  if (!std::isnan(value)) load.cache_usage = std::clamp(value, 0.0, 1.0);
}

// --- Labels of samples

std::optional<uint64_t> NumberLabel(const PrometheusSample& sample, std::string_view name) {
  std::string scratch;
  const auto text = sample.Label(name, scratch);
  return text ? ParseDecimal(*text) : std::nullopt;
}

// Of a label that numbers ranks: 0 where there is only one and nobody numbers it.
std::optional<uint64_t> RankLabel(const PrometheusSample& sample, std::string_view name) {
  std::string scratch;
  const auto text = sample.Label(name, scratch);
  return text ? ParseDecimal(*text) : 0;
}

// As Python writes it.
std::optional<bool> BoolLabel(const PrometheusSample& sample, std::string_view name) {
  std::string scratch;
  const auto text = sample.Label(name, scratch);
  if (text == "True") return true;
  if (text == "False") return false;
  return std::nullopt;
}

// --- Members of objects

std::optional<uint64_t> NumberOf(const Json& object, std::string_view key) {
  const Json* const found = object.Find(key);
  return found != nullptr ? found->unsigned_integer() : std::nullopt;
}

std::optional<bool> BoolOf(const Json& object, std::string_view key) {
  const Json* const found = object.Find(key);
  if (found == nullptr || found->boolean() == nullptr) return std::nullopt;
  return *found->boolean();
}

const Json& ObjectOf(const Json& object, std::string_view key) {
  static const Json kNone;
  const Json* const found = object.Find(key);
  return found != nullptr ? *found : kNone;
}

const Json::Array& ArrayOf(const Json& object, std::string_view key) {
  static const Json::Array kNone;
  const Json* const found = object.Find(key);
  return found != nullptr && found->array() != nullptr ? *found->array() : kNone;
}

void ReadRequests(RankLoadReport& load, const Json& object, std::string_view running,
                  std::string_view waiting) {
  load.running = Limit(NumberOf(object, running));
  load.waiting = Limit(NumberOf(object, waiting));
}

// --- vLLM

class VllmMetrics {
 public:
  void Read(const PrometheusSample& sample) {
    if (!sample.name().starts_with("vllm:")) return;
    report_.engine = EngineKind::kVllm;
    const auto rank = RankLabel(sample, "engine");
    if (!rank || *rank >= EngineReport::kMaxRanks) return;
    if (sample.name() == "vllm:cache_config_info") {
      ranks_.insert(*rank);
      ReadCache(sample);
    } else {
      ReadLoad(sample, *rank);
    }
  }

  std::optional<EngineReport> Take() {
    if (report_.engine == EngineKind::kUnknown) return std::nullopt;
    for (const RankLoadReport& load : report_.loads) ranks_.insert(load.rank);
    report_.ranks = static_cast<uint32_t>(ranks_.size());
    // Every rank's label has the blocks of all of them.
    if (report_.kv_tokens == 0 && report_.ranks > 0) {
      report_.kv_tokens = blocks_ / report_.ranks * report_.block_size;
    }
    return std::move(report_);
  }

 private:
  void ReadCache(const PrometheusSample& sample) {
    // Versions that say whether the backend has decided on the size yet.
    const bool resolved = BoolLabel(sample, "_block_size_resolved").value_or(true);
    if (resolved) KeepSmallest(report_.block_size, BlockSize(NumberLabel(sample, "block_size")));
    // In hybrid models this is less than the blocks would hold, and true.
    KeepSmallest(report_.kv_tokens, Tokens(NumberLabel(sample, "kv_cache_size_tokens")));
    blocks_ = Limit(NumberLabel(sample, "num_gpu_blocks"));
    if (const auto on = BoolLabel(sample, "enable_prefix_caching")) report_.prefix_caching = on;
  }

  void ReadLoad(const PrometheusSample& sample, uint64_t rank) {
    constexpr std::string_view kRunning = "vllm:num_requests_running";
    constexpr std::string_view kWaiting = "vllm:num_requests_waiting";
    const bool usage = sample.name() == "vllm:kv_cache_usage_perc" ||
                       sample.name() == "vllm:gpu_cache_usage_perc";  // before 0.12
    if (!usage && sample.name() != kRunning && sample.name() != kWaiting) return;
    const auto count = CountOf(sample.value());
    if (!count) return;
    RankLoadReport& load = *LoadAt(report_, rank);
    if (usage) SetUsage(load, sample.value());
    if (sample.name() == kRunning) load.running = *count;
    if (sample.name() == kWaiting) load.waiting = *count;
  }

  EngineReport report_;
  std::set<uint64_t> ranks_;
  uint64_t blocks_ = 0;
};

// --- SGLang

// Where every scheduler reports, those of one data-parallel rank say the same, so it does not
// matter whose word is kept. (Its first tensor-parallel rank is not number 0 where attention is
// shared.)
class SglangMetrics {
 public:
  void Read(const PrometheusSample& sample) {
    if (!sample.name().starts_with("sglang:")) return;
    report_.engine = EngineKind::kSglang;
    if (RankLabel(sample, "pp_rank") != 0) return;  // later stages run what the first one runs
    const auto rank = RankLabel(sample, "dp_rank");
    const auto count = CountOf(sample.value());
    if (!rank || *rank >= EngineReport::kMaxRanks || !count) return;
    const std::string_view name = sample.name().substr(sample.name().find(':') + 1);
    if (!ReadLoad(name, sample.value(), *rank)) ReadSize(name, *count);
  }

  std::optional<EngineReport> Take() {
    if (report_.engine == EngineKind::kUnknown) return std::nullopt;
    report_.ranks = static_cast<uint32_t>(report_.loads.size());
    return std::move(report_);
  }

 private:
  bool ReadLoad(std::string_view name, double value, uint64_t rank) {
    if (name == "num_running_reqs") {
      LoadAt(report_, rank)->running = *CountOf(value);
    } else if (name == "num_queue_reqs") {
      LoadAt(report_, rank)->waiting = *CountOf(value);
    } else if (name == "token_usage") {
      SetUsage(*LoadAt(report_, rank), value);
    } else {
      return false;
    }
    return true;
  }

  void ReadSize(std::string_view name, uint32_t value) {
    if (name == "page_size") KeepSmallest(report_.block_size, BlockSize(value));
    if (name == "max_total_num_tokens") KeepSmallest(report_.kv_tokens, uint64_t{value});
    if (name == "context_len") KeepSmallest(report_.context_length, uint64_t{value});
  }

  EngineReport report_;
};

uint32_t SglangBlockSize(const Json& info) {
  const uint32_t of_events = BlockSize(NumberOf(ObjectOf(info, "kv_events"), "block_size"));
  if (of_events > 0) return of_events;
  const uint64_t page = BlockSize(NumberOf(info, "page_size"));
  return BlockSize(page * std::max(1u, BlockSize(NumberOf(info, "dcp_size"))));
}

// The option is for all ranks together where they share the attention, and null where the engine
// decides; what a scheduler says of itself is better.
uint32_t SglangMaxRunning(const Json& info, uint32_t ranks) {
  uint32_t most = 0;
  for (const Json& state : ArrayOf(info, "internal_states")) {
    KeepSmallest(most, Limit(NumberOf(state, "effective_max_running_requests_per_dp")));
  }
  if (most > 0) return most;
  const uint32_t asked = Limit(NumberOf(info, "max_running_requests"));
  const bool shared = BoolOf(info, "enable_dp_attention").value_or(false);
  return shared && ranks > 0 ? asked / ranks : asked;
}

// Without chunks (-1) a step prefills up to another limit.
uint32_t SglangBatchTokens(const Json& info) {
  const uint32_t chunk = Limit(NumberOf(info, "chunked_prefill_size"));
  return chunk > 0 ? chunk : Limit(NumberOf(info, "max_prefill_tokens"));
}

// --- TensorRT-LLM

void ReadIteration(const Json& iteration, EngineReport& report) {
  const Json& cache = ObjectOf(iteration, "kvCacheStats");
  const uint32_t block_size = BlockSize(NumberOf(cache, "tokensPerBlock"));
  const uint64_t blocks = Limit(NumberOf(cache, "maxNumBlocks"));
  KeepSmallest(report.block_size, block_size);
  KeepSmallest(report.kv_tokens, Tokens(blocks * block_size));
  KeepSmallest(report.max_running, Limit(NumberOf(iteration, "maxNumActiveRequests")));
  RankLoadReport* const load = LoadAt(report, NumberOf(iteration, "attentionDpRank").value_or(0));
  if (load == nullptr) return;
  ReadRequests(*load, iteration, "numActiveRequests", "numQueuedRequests");
  const double used = Limit(NumberOf(cache, "usedNumBlocks"));
  SetUsage(*load, blocks > 0 ? used / static_cast<double>(blocks) : 0);
}

template <class Reading>
std::optional<EngineReport> ReadSamples(std::string_view page) {
  Reading reading;
  PrometheusReader reader(page);
  while (const auto sample = reader.Next()) reading.Read(*sample);
  return reading.Take();
}

}  // namespace

std::optional<EngineReport> ReadVllmMetrics(std::string_view page) {
  return ReadSamples<VllmMetrics>(page);
}

std::optional<EngineReport> ReadVllmServerInfo(std::string_view page) {
  const auto json = Json::Parse(page);
  if (!json || json->Find("vllm_config") == nullptr) return std::nullopt;
  const Json& config = ObjectOf(*json, "vllm_config");
  const Json& scheduler = ObjectOf(config, "scheduler_config");
  EngineReport report{.engine = EngineKind::kVllm};
  report.max_running = Limit(NumberOf(scheduler, "max_num_seqs"));
  report.batch_tokens = Limit(NumberOf(scheduler, "max_num_batched_tokens"));
  report.context_length = Tokens(NumberOf(ObjectOf(config, "model_config"), "max_model_len"));
  return report;
}

std::optional<EngineReport> ReadSglangServerInfo(std::string_view page) {
  const auto json = Json::Parse(page);
  if (!json) return std::nullopt;
  if (json->Find("page_size") == nullptr && json->Find("max_total_num_tokens") == nullptr) {
    return std::nullopt;
  }
  EngineReport report{.engine = EngineKind::kSglang};
  report.ranks = std::min(Limit(NumberOf(*json, "dp_size")), EngineReport::kMaxRanks);
  report.block_size = SglangBlockSize(*json);
  report.kv_tokens = Tokens(NumberOf(*json, "max_total_num_tokens"));
  report.max_running = SglangMaxRunning(*json, report.ranks);
  report.batch_tokens = SglangBatchTokens(*json);
  report.context_length = Tokens(NumberOf(*json, "context_length"));
  if (const auto off = BoolOf(*json, "disable_radix_cache")) report.prefix_caching = !*off;
  return report;
}

std::optional<EngineReport> ReadSglangLoads(std::string_view page) {
  const auto json = Json::Parse(page);
  if (!json) return std::nullopt;
  EngineReport report{.engine = EngineKind::kSglang};
  for (const Json& said : ArrayOf(*json, "loads")) {
    RankLoadReport* const load = LoadAt(report, NumberOf(said, "dp_rank").value_or(0));
    if (load == nullptr) continue;
    ReadRequests(*load, said, "num_running_reqs", "num_waiting_reqs");
    if (const Json* const usage = said.Find("token_usage")) {
      SetUsage(*load, usage->number().value_or(0));
    }
    KeepSmallest(report.kv_tokens, Tokens(NumberOf(said, "max_total_num_tokens")));
    KeepSmallest(report.max_running, Limit(NumberOf(said, "max_running_requests")));
  }
  if (report.loads.empty()) return std::nullopt;
  report.ranks = static_cast<uint32_t>(report.loads.size());
  return report;
}

std::optional<EngineReport> ReadSglangMetrics(std::string_view page) {
  return ReadSamples<SglangMetrics>(page);
}

std::optional<EngineReport> ReadTrtllmMetrics(std::string_view page) {
  const auto json = Json::Parse(page);
  if (!json || json->array() == nullptr) return std::nullopt;
  EngineReport report{.engine = EngineKind::kTrtllm};
  for (const Json& iteration : *json->array()) {
    if (iteration.Find("kvCacheStats") != nullptr) ReadIteration(iteration, report);
  }
  if (report.loads.empty() && !json->array()->empty()) return std::nullopt;
  report.ranks = static_cast<uint32_t>(report.loads.size());
  return report;
}

std::optional<EngineReport> ReadMetrics(std::string_view page) {
  if (Trim(page).starts_with('[')) return ReadTrtllmMetrics(page);
  if (auto vllm = ReadVllmMetrics(page)) return vllm;
  return ReadSglangMetrics(page);
}

uint64_t ReadContextLength(std::string_view model_card) {
  const auto json = Json::Parse(model_card);
  return json ? Tokens(NumberOf(*json, "max_model_len")) : 0;
}

EngineReport Joined(EngineReport first, const EngineReport& second) {
  const auto fill = [](auto& value, const auto& other) {
    if (value == std::remove_cvref_t<decltype(value)>{}) value = other;
  };
  fill(first.engine, second.engine);
  fill(first.ranks, second.ranks);
  fill(first.block_size, second.block_size);
  fill(first.kv_tokens, second.kv_tokens);
  fill(first.max_running, second.max_running);
  fill(first.batch_tokens, second.batch_tokens);
  fill(first.prefix_caching, second.prefix_caching);
  fill(first.context_length, second.context_length);
  return first;
}

}  // namespace fathom
