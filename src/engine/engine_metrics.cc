// Readers of the pages in Prometheus' text format.
#include <set>
#include <string>
#include <utility>

#include "base/text.h"
#include "codec/prometheus_text.h"
#include "engine/engine_pages.h"
#include "engine/reported_numbers.h"

namespace fathom {
namespace {

std::optional<uint32_t> CountOf(double value) {
  if (!(value >= 0)) return std::nullopt;
  constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();
  return value < kMost ? static_cast<uint32_t>(value) : kMost;
}

// --- Labels of samples

std::optional<uint64_t> NumberLabel(const PrometheusSample& sample, std::string_view name) {
  std::string scratch;
  const auto text = sample.Label(name, scratch);
  return text ? ParseDecimal(*text) : std::nullopt;
}

// The value of a rank label; 0 if the label is missing, because there is only one rank.
std::optional<uint64_t> RankLabel(const PrometheusSample& sample, std::string_view name) {
  std::string scratch;
  const auto text = sample.Label(name, scratch);
  return text ? ParseDecimal(*text) : 0;
}

// In Python's spelling.
std::optional<bool> BoolLabel(const PrometheusSample& sample, std::string_view name) {
  std::string scratch;
  const auto text = sample.Label(name, scratch);
  if (text == "True") return true;
  if (text == "False") return false;
  return std::nullopt;
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
    // The label of every rank has the number of blocks of all ranks.
    if (report_.ranks > 0) report_.num_blocks = blocks_ / report_.ranks;
    if (report_.kv_tokens == 0) report_.kv_tokens = report_.num_blocks * report_.block_size;
    return std::move(report_);
  }

 private:
  void ReadCache(const PrometheusSample& sample) {
    // Newer versions report whether the backend has already decided on the size.
    const bool resolved = BoolLabel(sample, "_block_size_resolved").value_or(true);
    if (resolved) KeepSmallest(report_.block_size, BlockSize(NumberLabel(sample, "block_size")));
    // In hybrid models this is less than the capacity of the blocks, and is the correct value.
    KeepSmallest(report_.kv_tokens, Tokens(NumberLabel(sample, "kv_cache_size_tokens")));
    KeepSmallest(blocks_, Blocks(NumberLabel(sample, "num_gpu_blocks")));
    if (const auto on = BoolLabel(sample, "enable_prefix_caching")) report_.prefix_caching = on;
  }

  void ReadLoad(const PrometheusSample& sample, uint64_t rank) {
    constexpr std::string_view kRunning = "vllm:num_requests_running";
    constexpr std::string_view kWaiting = "vllm:num_requests_waiting";
    const bool usage = sample.name() == "vllm:kv_cache_usage_perc" ||
                       sample.name() == "vllm:gpu_cache_usage_perc";  // before 0.12
    constexpr std::string_view kPreempted = "vllm:num_preemptions_total";
    if (!usage && sample.name() != kRunning && sample.name() != kWaiting &&
        sample.name() != kPreempted) {
      return;
    }
    const auto count = CountOf(sample.value());
    if (!count) return;
    RankLoadReport& load = *LoadAt(report_, rank);
    if (usage) SetUsage(load, sample.value());
    if (sample.name() == kRunning) load.running = *count;
    if (sample.name() == kWaiting) load.waiting = *count;
    if (sample.name() == kPreempted) load.preemptions = *count;
  }

  EngineReport report_;
  std::set<uint64_t> ranks_;
  uint64_t blocks_ = 0;
};

// --- SGLang

// If every scheduler reports, the values of one data-parallel rank are equal, so it does not matter
// which one is kept. (Its first tensor-parallel rank is not number 0 if attention is shared.)
class SglangMetrics {
 public:
  void Read(const PrometheusSample& sample) {
    if (!sample.name().starts_with("sglang:")) return;
    report_.engine = EngineKind::kSglang;
    if (RankLabel(sample, "pp_rank") != 0) return;  // later stages run the same requests
    const auto rank = RankLabel(sample, "dp_rank");
    const auto count = CountOf(sample.value());
    if (!rank || *rank >= EngineReport::kMaxRanks || !count) return;
    const std::string_view name = sample.name().substr(sample.name().find(':') + 1);
    if (!ReadLoad(name, sample.value(), *rank)) ReadSize(name, *count);
  }

  std::optional<EngineReport> Take() {
    if (report_.engine == EngineKind::kUnknown) return std::nullopt;
    report_.ranks = static_cast<uint32_t>(report_.loads.size());
    if (report_.num_blocks == 0) report_.num_blocks = SglangPages(report_);
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
    } else if (name == "num_retracted_requests_total") {
      LoadAt(report_, rank)->preemptions = *CountOf(value);
    } else {
      return false;
    }
    return true;
  }

  void ReadSize(std::string_view name, uint32_t value) {
    if (name == "page_size") KeepSmallest(report_.block_size, BlockSize(value));
    if (name == "num_pages") KeepSmallest(report_.num_blocks, uint64_t{value});
    if (name == "max_total_num_tokens") KeepSmallest(report_.kv_tokens, uint64_t{value});
    if (name == "context_len") KeepSmallest(report_.context_length, uint64_t{value});
  }

  EngineReport report_;
};

// --- TensorRT-LLM

// Configured values are present from the start; the more accurate ones after an iteration.
class TrtllmPrometheus {
 public:
  void Read(const PrometheusSample& sample) {
    if (!sample.name().starts_with("trtllm_")) return;
    report_.engine = EngineKind::kTrtllm;
    if (sample.name() == "trtllm_kv_cache_config_info") {
      ReadConfig(sample);
    } else if (sample.name() == "trtllm_kv_cache_tokens_per_block") {
      KeepSmallest(report_.block_size, BlockSize(CountOf(sample.value())));
    } else if (sample.name() == "trtllm_kv_cache_max_blocks") {
      KeepSmallest(report_.num_blocks, Blocks(CountOf(sample.value())));
    }
  }

  std::optional<EngineReport> Take() {
    if (report_.engine == EngineKind::kUnknown) return std::nullopt;
    if (report_.block_size == 0) report_.block_size = configured_;
    report_.kv_tokens = report_.num_blocks * report_.block_size;
    return std::move(report_);
  }

 private:
  void ReadConfig(const PrometheusSample& sample) {
    KeepSmallest(configured_, BlockSize(NumberLabel(sample, "page_size")));
    if (const auto on = BoolLabel(sample, "enable_block_reuse")) report_.prefix_caching = on;
  }

  EngineReport report_;
  uint32_t configured_ = 0;
};

template <class Reading>
std::optional<EngineReport> ReadSamples(std::string_view page) {
  Reading reading;
  PrometheusReader reader(page);
  double started = 0;
  while (const auto sample = reader.Next()) {
    reading.Read(*sample);
    if (sample->name() == "process_start_time_seconds" && sample->value() > 0) {
      started = sample->value();
    }
  }
  auto report = reading.Take();
  if (report) report->started = started;
  return report;
}

}  // namespace

std::optional<EngineReport> ReadVllmMetrics(std::string_view page) {
  return ReadSamples<VllmMetrics>(page);
}

std::optional<EngineReport> ReadSglangMetrics(std::string_view page) {
  return ReadSamples<SglangMetrics>(page);
}

std::optional<EngineReport> ReadTrtllmPrometheus(std::string_view page) {
  return ReadSamples<TrtllmPrometheus>(page);
}

}  // namespace fathom
