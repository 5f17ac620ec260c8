// How much KV cache does this engine make of this GPU, by its own formula?
//
// Weights and cache are arithmetic. What the engine takes beside them (activations, communication
// buffers, CUDA graphs) is not known before it runs: that number is assumed, and the result says
// so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "diagnose/sizing/gpu.h"
#include "diagnose/sizing/kv_cost.h"
#include "diagnose/sizing/model_shape.h"

namespace fathom {

// What of an engine's settings decides its cache. Nothing: the engine's default.
struct EngineMemory {
  // gpu_memory_utilization, mem_fraction_static, free_gpu_memory_fraction.
  std::optional<double> fraction;
  std::optional<uint64_t> cache_bytes;   // kv_cache_memory_bytes, max_gpu_total_bytes: a GPU's
  std::optional<uint64_t> max_tokens;    // max_total_tokens, max_tokens
  std::optional<uint32_t> block_size;    // tokens
  std::optional<uint64_t> batch_tokens;  // max_num_batched_tokens, chunked_prefill_size
  // max_num_seqs, max_running_requests, max_batch_size. Takes no memory of its own, but bounds what
  // runs at once: a Workload that has no such bound takes this one.
  std::optional<uint64_t> max_sequences;
  // Instead of the assumption: whatever is neither weights nor cache.
  std::optional<uint64_t> overhead;
};

// A number that the engine did not say and arithmetic does not give.
struct Assumption {
  std::string name;   // stays the same: "overhead", "visible-memory"
  double value = 0;   // bytes, or a share
  std::string words;  // "4.00 GiB for activations, NCCL and CUDA graphs (2 to 6 are usual)"

  bool operator==(const Assumption&) const = default;
};

// What one rank's cache holds.
struct KvCapacity {
  uint64_t tokens = 0;
  uint64_t blocks = 0;  // of a prefix; a hybrid model has as many again for each other group
  uint32_t block_size = 0;
  bool observed = false;  // said by the engine itself

  bool operator==(const KvCapacity&) const = default;
};

struct KvBudget {
  EngineKind engine = EngineKind::kUnknown;
  uint64_t gpu_bytes = 0;        // visible memory of one GPU
  uint64_t installed_bytes = 0;  // nvidia-smi's total of it
  double fraction = 0;           // the engine's, see EngineMemory
  uint64_t weight_bytes = 0;     // on the GPU that has the least room
  uint64_t overhead_bytes = 0;
  uint64_t cache_bytes = 0;    // of one GPU; 0: the model does not fit
  uint64_t missing_bytes = 0;  // then: how much it does not fit by
  KvCost cost;                 // on that GPU
  KvCapacity capacity;
  std::vector<Assumption> assumptions;
  // One line of arithmetic: "79.10 GiB x 0.92 - 32.85 GiB weights - 4.00 GiB overhead = 35.92 GiB".
  std::string formula;
};

// "32.85 GiB", "640.00 MiB", "81,920 B".
std::string BytesText(uint64_t bytes);

double DefaultFraction(const KvLayout& layout, const EngineMemory& memory, const Gpu& gpu);

// For contexts of `context` tokens, which matters to models with windows only; 0: the model's own
// context length.
// Errors  kCaller: an engine that is not known, a fraction outside (0, 1], a model whose weights
//         are not known, and what Check() of the layout says.
Result<KvBudget> ReckonBudget(const ModelShape& shape, const Gpu& gpu, const KvLayout& layout,
                              const EngineMemory& memory, uint64_t context = 0);

// What an engine said of one rank; 0: not said.
struct ObservedCapacity {
  uint64_t num_blocks = 0;
  uint64_t kv_tokens = 0;
  uint32_t block_size = 0;
};

// Nothing if it has not said enough. One of vLLM's blocks is never used.
std::optional<KvCapacity> CapacityFrom(const ObservedCapacity& said, EngineKind engine);
std::optional<KvCapacity> CapacityFrom(const EngineReport& report);

}  // namespace fathom
