#include "diagnose/sizing/kv_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "diagnose/sizing/binary_units.h"
#include "diagnose/sizing/weight_share.h"

namespace fathom {
namespace {

constexpr double kVllmFraction = 0.92;
constexpr double kTrtllmFraction = 0.9;
constexpr double kVllmOverhead = 4 * kGiB;
constexpr double kTrtllmOverhead = 4.5 * kGiB;
constexpr double kSglangOverhead = 0.5 * kGiB;
constexpr double kSglangContext = 0.6 * kGiB;  // gone before SGLang looks how much is free
// A small GPU runs small models with small batches.
constexpr double kMostOverhead = 0.08;

// Dimensions within their bounds may still multiply to more than any integer holds.
uint64_t ToBytes(double bytes) { return static_cast<uint64_t>(std::clamp(bytes, 0.0, 1e18)); }

// What SGLang takes for its batches when nobody says it, by the memory of the GPU.
struct SglangDefaults {
  double below;      // MiB on the board
  double chunk;      // tokens of a prefill step
  double few, many;  // sequences in a CUDA graph, with fewer than 4 GPUs and with more
};
constexpr SglangDefaults kSglangDefaults[] = {
    {20 * 1024.0, 2048, 8, 8},      {35 * 1024.0, 2048, 24, 80}, {60 * 1024.0, 4096, 32, 160},
    {160 * 1024.0, 8192, 256, 512}, {INFINITY, 16384, 512, 512},
};

// Its own formula for mem_fraction_static, in MiB.
double SglangFraction(const KvLayout& layout, const EngineMemory& memory, const Gpu& gpu) {
  const double board = static_cast<double>(gpu.installed) / kMiB;
  const SglangDefaults& usual = *std::ranges::find_if(
      kSglangDefaults, [&](const SglangDefaults& row) { return board < row.below; });
  const double gpus = static_cast<double>(layout.parallel.tensor) * layout.parallel.pipeline;
  const double chunk =
      memory.batch_tokens ? static_cast<double>(*memory.batch_tokens) : usual.chunk;
  const double sequences = layout.parallel.tensor < 4 ? usual.few : usual.many;
  double reserved = 512 + 1.5 * std::max(chunk, 2048.0) + gpus / 8 * 1024 + 2 * sequences;
  if (board > 60 * 1024) reserved = std::max(reserved, 10 * 1024.0);
  return std::clamp(std::round((board - reserved) / board * 1000) / 1000, 0.001, 1.0);
}

double AssumedOverhead(EngineKind engine, const Gpu& gpu) {
  const double most = kMostOverhead * static_cast<double>(gpu.visible);
  if (engine == EngineKind::kSglang) return std::min(kSglangOverhead, most);
  return std::min(engine == EngineKind::kVllm ? kVllmOverhead : kTrtllmOverhead, most);
}

// What stands between a GPU and its cache.
struct Terms {
  EngineKind engine;
  double visible;
  double fraction;
  double weights;
  double overhead;

  double free_before() const { return visible - kSglangContext; }

  // Below 0: it does not fit.
  double Cache() const {
    if (engine == EngineKind::kTrtllm) return (visible - weights - overhead) * fraction;
    const double all = engine == EngineKind::kSglang ? free_before() : visible;
    return all * fraction - weights - overhead;
  }

  std::string Formula() const {
    if (engine == EngineKind::kTrtllm) {
      return fmt::format(
          "({:.2f} GiB - {:.2f} GiB weights - {:.2f} GiB overhead) x {:g} = {:.2f} GiB",
          visible / kGiB, weights / kGiB, overhead / kGiB, fraction, Cache() / kGiB);
    }
    const double all = engine == EngineKind::kSglang ? free_before() : visible;
    return fmt::format("{:.2f} GiB x {:g} - {:.2f} GiB weights - {:.2f} GiB overhead = {:.2f} GiB",
                       all / kGiB, fraction, weights / kGiB, overhead / kGiB, Cache() / kGiB);
  }
};

uint32_t BlockSize(EngineKind engine, const EngineMemory& memory) {
  if (memory.block_size) return *memory.block_size;
  if (engine == EngineKind::kSglang) return 1;
  return engine == EngineKind::kTrtllm ? 32 : 16;
}

KvCapacity WholeBlocks(double tokens, uint32_t block_size, EngineKind engine) {
  auto blocks = static_cast<uint64_t>(tokens / block_size);
  // vLLM keeps its first block for padding.
  if (engine == EngineKind::kVllm && blocks > 0) --blocks;
  return {
      .tokens = blocks * block_size, .blocks = blocks, .block_size = block_size, .observed = false};
}

Result<void> CheckSettings(const ModelShape& shape, const KvLayout& layout,
                           const EngineMemory& memory) {
  TRY_VOID(Check(layout, shape));
  if (layout.engine == EngineKind::kUnknown) {
    return Fail(Blame::kCaller,
                "the engine is unknown; the formula depends on it: vllm, sglang or trtllm");
  }
  if (memory.fraction && !(*memory.fraction > 0 && *memory.fraction <= 1)) {
    return Fail(Blame::kCaller, "a memory fraction of {} is not between 0 and 1", *memory.fraction);
  }
  if (memory.block_size == 0u) return Fail(Blame::kCaller, "the block size must be above 0 tokens");
  if (shape.WeightBytes() <= 0) {
    return Fail(Blame::kCaller,
                "the size of the weights is unknown; model.safetensors.index.json beside "
                "config.json says it");
  }
  if (shape.CountOf(LayerKind::kState) == shape.layers.size()) {
    return Fail(Blame::kCaller, "no layer of this model has a KV cache");
  }
  return {};
}

void Assume(KvBudget& budget, std::string name, double value, std::string words) {
  budget.assumptions.push_back({std::move(name), value, std::move(words)});
}

void AssumeOverhead(KvBudget& budget) {
  const auto overhead = static_cast<double>(budget.overhead_bytes);
  if (budget.engine == EngineKind::kSglang) {
    Assume(budget, "context", kSglangContext,
           fmt::format("{:.2f} GiB taken by the CUDA context before the model is loaded",
                       kSglangContext / kGiB));
    Assume(budget, "overhead", overhead,
           fmt::format("{:.2f} GiB taken beside the weights while the model is loaded",
                       overhead / kGiB));
    return;
  }
  Assume(budget, "overhead", overhead,
         fmt::format("{:.2f} GiB for activations, NCCL and CUDA graphs (half to half as much again "
                     "is usual)",
                     overhead / kGiB));
}

void AssumeFraction(KvBudget& budget) {
  std::string words = fmt::format("{:g}, {}'s default", budget.fraction, Name(budget.engine));
  if (budget.engine == EngineKind::kVllm) words += " since 0.20; it was 0.9 before";
  if (budget.engine == EngineKind::kSglang) words += " for this GPU, by its own formula";
  Assume(budget, "fraction", budget.fraction, std::move(words));
}

void AssumeFromModel(KvBudget& budget, const ModelShape& shape, double context) {
  if (!shape.weight_bytes) {
    Assume(budget, "weights", shape.WeightBytes(),
           fmt::format("{:.1f} GB of weights in total, estimated from the model's dimensions",
                       shape.WeightBytes() / 1e9));
  }
  if (budget.cost.window_bytes > 0) {
    Assume(budget, "context-length", context,
           fmt::format("contexts of {:.0f} tokens; layers with a window keep {} of them", context,
                       budget.cost.window));
  }
  if (const uint32_t states = shape.CountOf(LayerKind::kState); states > 0) {
    Assume(budget, "state-layers", states,
           fmt::format("{} layers keep a state for each sequence, which is not counted", states));
  }
}

// How the cache of one GPU of that stage comes out.
KvBudget StageBudget(const Stage& stage, KvBudget budget, const ModelShape& shape,
                     const KvLayout& layout, const EngineMemory& memory, double context) {
  const Terms terms{.engine = budget.engine,
                    .visible = static_cast<double>(budget.gpu_bytes),
                    .fraction = budget.fraction,
                    .weights = WeightsOnGpu(stage, layout, shape),
                    .overhead = static_cast<double>(budget.overhead_bytes)};
  budget.weight_bytes = ToBytes(terms.weights);
  budget.formula = terms.Formula();
  double cache = terms.Cache();
  if (memory.cache_bytes) {
    const auto stated = static_cast<double>(*memory.cache_bytes);
    // vLLM takes the number as it is, TensorRT-LLM as a limit.
    cache = budget.engine == EngineKind::kVllm ? stated : std::min(cache, stated);
    budget.formula = fmt::format("{:.2f} GiB as set", cache / kGiB);
  }
  budget.cache_bytes = ToBytes(cache);
  budget.missing_bytes = ToBytes(-cache);
  budget.cost = CostOf(stage, layout, shape);
  // A stage of layers with states only does not bound the cache.
  const double per_token = budget.cost.ContextBytes(context) / context;
  double tokens = per_token > 0 ? static_cast<double>(budget.cache_bytes) / per_token : 1e15;
  if (memory.max_tokens) tokens = std::min(tokens, static_cast<double>(*memory.max_tokens));
  budget.capacity = WholeBlocks(tokens, BlockSize(budget.engine, memory), budget.engine);
  return budget;
}

bool LessRoom(const KvBudget& a, const KvBudget& b) {
  if (a.missing_bytes != b.missing_bytes) return a.missing_bytes > b.missing_bytes;
  return a.capacity.tokens < b.capacity.tokens;
}

}  // namespace

std::string BytesText(uint64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (number >= kGiB) return fmt::format("{:.2f} GiB", number / kGiB);
  if (number >= kMiB) return fmt::format("{:.2f} MiB", number / kMiB);
  std::string digits = fmt::to_string(bytes);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits + " B";
}

double DefaultFraction(const KvLayout& layout, const EngineMemory& memory, const Gpu& gpu) {
  if (layout.engine == EngineKind::kSglang) return SglangFraction(layout, memory, gpu);
  return layout.engine == EngineKind::kTrtllm ? kTrtllmFraction : kVllmFraction;
}

Result<KvBudget> ReckonBudget(const ModelShape& shape, const Gpu& gpu, const KvLayout& layout,
                              const EngineMemory& memory, uint64_t context) {
  TRY_VOID(CheckSettings(shape, layout, memory));
  KvBudget base{.engine = layout.engine,
                .gpu_bytes = gpu.visible,
                .installed_bytes = gpu.installed,
                .fraction = memory.fraction.value_or(DefaultFraction(layout, memory, gpu)),
                .overhead_bytes = memory.overhead.value_or(
                    static_cast<uint64_t>(AssumedOverhead(layout.engine, gpu)))};
  if (context == 0) context = std::max<uint64_t>(1, shape.context_length);
  const auto tokens = static_cast<double>(context);

  std::optional<KvBudget> least;
  for (const Stage& stage : StagesOf(layout, shape)) {
    KvBudget budget = StageBudget(stage, base, shape, layout, memory, tokens);
    if (!least || LessRoom(budget, *least)) least = std::move(budget);
  }
  CHECK(least.has_value());
  Assume(*least, "visible-memory", static_cast<double>(gpu.visible), gpu.basis);
  if (!memory.fraction) AssumeFraction(*least);
  if (!memory.overhead) AssumeOverhead(*least);
  AssumeFromModel(*least, shape, tokens);
  return *std::move(least);
}

std::optional<KvCapacity> CapacityFrom(const ObservedCapacity& said, EngineKind engine) {
  if (said.kv_tokens > 0) {
    const uint32_t block_size = std::max(1u, said.block_size);
    return KvCapacity{.tokens = said.kv_tokens,
                      .blocks = said.num_blocks > 0 ? said.num_blocks : said.kv_tokens / block_size,
                      .block_size = block_size,
                      .observed = true};
  }
  if (said.num_blocks == 0 || said.block_size == 0) return std::nullopt;
  const double tokens = static_cast<double>(said.num_blocks) * said.block_size;
  if (tokens > 1e15) return std::nullopt;
  KvCapacity capacity = WholeBlocks(tokens, said.block_size, engine);
  capacity.observed = true;
  return capacity;
}

std::optional<KvCapacity> CapacityFrom(const EngineReport& report) {
  return CapacityFrom({.num_blocks = report.num_blocks,
                       .kv_tokens = report.kv_tokens,
                       .block_size = report.event_block_size()},
                      report.engine);
}

}  // namespace fathom
