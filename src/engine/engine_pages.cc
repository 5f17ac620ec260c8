#include "engine/engine_pages.h"

#include <algorithm>
#include <type_traits>

#include "base/text.h"
#include "codec/json.h"
#include "engine/reported_numbers.h"

namespace fathom {
namespace {

uint32_t ContextParallel(std::optional<uint64_t> value) {
  return value && *value <= EngineReport::kMaxRanks ? static_cast<uint32_t>(*value) : 0;
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

// --- SGLang

// The block size of the events is that of a page with the factor already included.
void ReadSglangBlock(const Json& info, EngineReport& report) {
  report.block_size = BlockSize(NumberOf(info, "page_size"));
  report.context_parallel = ContextParallel(NumberOf(info, "dcp_size"));
  const uint32_t of_events = BlockSize(NumberOf(ObjectOf(info, "kv_events"), "block_size"));
  if (of_events == 0) return;
  if (report.block_size == 0 || of_events % report.block_size != 0 ||
      of_events / report.block_size > EngineReport::kMaxRanks) {
    report.block_size = of_events;
  }
  report.context_parallel = of_events / report.block_size;
}

// If ranks share the attention, the option is the sum for all of them; it is null if the engine
// decides. The value of a scheduler is more accurate.
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

// Without chunks (-1), another limit applies to the prefill of a step.
uint32_t SglangBatchTokens(const Json& info) {
  const uint32_t chunk = Limit(NumberOf(info, "chunked_prefill_size"));
  return chunk > 0 ? chunk : Limit(NumberOf(info, "max_prefill_tokens"));
}

// --- TensorRT-LLM

void ReadIteration(const Json& iteration, EngineReport& report) {
  const Json& cache = ObjectOf(iteration, "kvCacheStats");
  const uint32_t block_size = BlockSize(NumberOf(cache, "tokensPerBlock"));
  const uint64_t blocks = Blocks(NumberOf(cache, "maxNumBlocks"));
  KeepSmallest(report.block_size, block_size);
  KeepSmallest(report.num_blocks, blocks);
  KeepSmallest(report.kv_tokens, Tokens(blocks * block_size));
  KeepSmallest(report.max_running, Limit(NumberOf(iteration, "maxNumActiveRequests")));
  RankLoadReport* const load = LoadAt(report, NumberOf(iteration, "attentionDpRank").value_or(0));
  if (load == nullptr) return;
  ReadRequests(*load, iteration, "numActiveRequests", "numQueuedRequests");
  const double used = Limit(NumberOf(cache, "usedNumBlocks"));
  SetUsage(*load, blocks > 0 ? used / static_cast<double>(blocks) : 0);
}

// A name that is too long for one is as good as none.
std::optional<std::string> SglangReasoningParser(const Json& info) {
  constexpr size_t kLongest = 64;
  const Json* const parser = info.Find("reasoning_parser");
  if (parser == nullptr) return std::nullopt;
  if (parser->is_null()) return "";
  if (parser->string() == nullptr || parser->string()->size() > kLongest) return std::nullopt;
  return *parser->string();
}

// A path or a name; one that is too long is as good as none.
std::string PathOf(const Json& info, std::string_view key) {
  constexpr size_t kLongest = 4096;
  const Json* const path = info.Find(key);
  const bool fine = path != nullptr && path->string() != nullptr;
  return fine && path->string()->size() < kLongest ? *path->string() : "";
}

}  // namespace

std::optional<EngineReport> ReadVllmServerInfo(std::string_view page) {
  const auto json = Json::Parse(page);
  if (!json || json->Find("vllm_config") == nullptr) return std::nullopt;
  const Json& config = ObjectOf(*json, "vllm_config");
  const Json& scheduler = ObjectOf(config, "scheduler_config");
  EngineReport report{.engine = EngineKind::kVllm};
  report.max_running = Limit(NumberOf(scheduler, "max_num_seqs"));
  report.batch_tokens = Limit(NumberOf(scheduler, "max_num_batched_tokens"));
  report.context_length = Tokens(NumberOf(ObjectOf(config, "model_config"), "max_model_len"));
  const Json& parallel = ObjectOf(config, "parallel_config");
  report.context_parallel = ContextParallel(NumberOf(parallel, "decode_context_parallel_size"));
  return report;
}

std::optional<EngineReport> ReadVllmEventSources(std::string_view page) {
  const auto json = Json::Parse(page);
  const Json::Object* const ranks = json ? json->object() : nullptr;
  if (ranks == nullptr || ranks->empty() || ranks->size() > EngineReport::kMaxRanks) {
    return std::nullopt;
  }
  for (const auto& [rank, source] : *ranks) {
    if (!ParseDecimal(rank) || source.object() == nullptr) return std::nullopt;
  }
  return EngineReport{.engine = EngineKind::kVllm, .ranks = static_cast<uint32_t>(ranks->size())};
}

std::optional<EngineReport> ReadSglangServerInfo(std::string_view page) {
  const auto json = Json::Parse(page);
  if (!json) return std::nullopt;
  if (json->Find("page_size") == nullptr && json->Find("max_total_num_tokens") == nullptr) {
    return std::nullopt;
  }
  EngineReport report{.engine = EngineKind::kSglang};
  report.ranks = std::min(Limit(NumberOf(*json, "dp_size")), EngineReport::kMaxRanks);
  ReadSglangBlock(*json, report);
  report.kv_tokens = Tokens(NumberOf(*json, "max_total_num_tokens"));
  report.num_blocks = SglangPages(report);
  report.max_running = SglangMaxRunning(*json, report.ranks);
  report.batch_tokens = SglangBatchTokens(*json);
  report.context_length = Tokens(NumberOf(*json, "context_length"));
  if (const auto off = BoolOf(*json, "disable_radix_cache")) report.prefix_caching = !*off;
  report.reasoning_parser = SglangReasoningParser(*json);
  report.model_path = PathOf(*json, "model_path");
  report.tokenizer_path = PathOf(*json, "tokenizer_path");
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
  fill(first.num_blocks, second.num_blocks);
  fill(first.context_parallel, second.context_parallel);
  fill(first.kv_tokens, second.kv_tokens);
  fill(first.max_running, second.max_running);
  fill(first.batch_tokens, second.batch_tokens);
  fill(first.prefix_caching, second.prefix_caching);
  fill(first.context_length, second.context_length);
  fill(first.reasoning_parser, second.reasoning_parser);
  fill(first.model_path, second.model_path);
  fill(first.tokenizer_path, second.tokenizer_path);
  fill(first.started, second.started);
  return first;
}

}  // namespace fathom
