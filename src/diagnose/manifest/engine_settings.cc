#include "diagnose/manifest/engine_settings.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "base/text.h"
#include "diagnose/manifest/identity.h"
#include "diagnose/manifest/publisher_settings.h"
#include "diagnose/manifest/setting_lookup.h"

namespace fathom {
namespace {

uint32_t RanksOf(const Program& program, SettingNames names) {
  const auto ranks = Narrowed<uint32_t>(CountOf(program, names));
  return std::max(1u, ranks.value.value_or(1));
}

Setting<bool> SwitchOf(const Program& program, SettingNames names, std::optional<bool> otherwise) {
  const Written* written = FirstWritten(program, names);
  if (written == nullptr) return {otherwise, std::nullopt};
  return {AsSwitch(written->value), *written};
}

// A setting that is off where another one is on.
Setting<bool> OppositeOf(const Program& program, SettingNames names,
                         std::optional<bool> otherwise) {
  Setting<bool> setting = SwitchOf(program, names, std::nullopt);
  if (!setting.written) return {otherwise, std::nullopt};
  if (setting.value) setting.value = !*setting.value;
  return setting;
}

// A default holds only where no file that we have not seen may say otherwise.
template <class T>
std::optional<T> Default(const Program& program, T value) {
  return program.unseen_file ? std::nullopt : std::optional<T>(std::move(value));
}

// Blocks of a context that several ranks share have the tokens of all of them in events.
void Multiply(Setting<uint32_t>& size, uint32_t ranks) {
  if (size.value && *size.value <= std::numeric_limits<uint32_t>::max() / ranks) {
    *size.value *= ranks;
  }
}

// Attention backends that have a block size of their own where none is set.
bool ForcesSize(std::string_view backend) {
  constexpr std::string_view kForcing[] = {
      "flashmla",   "cutlass_mla", "flashinfer_mla", "trtllm_m", "fa4", "cutedsl",
      "tokenspeed", "dsv4",        "sparse",         "hpc",      "xpu", "ascend",
      "cpu"};
  std::string name;
  for (const char c : backend) {
    name.push_back(c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  // What a variable says is not known.
  return name.empty() || name.contains('$') ||
         std::ranges::any_of(kForcing, [&](std::string_view part) { return name.contains(part); });
}

bool BackendForcesSize(const Program& program) {
  constexpr std::string_view kNames[] = {
      "--attention-backend",        "attention-backend",          "VLLM_ATTENTION_BACKEND",
      "--attention-config.backend", "attention-config.backend",   "--prefill-attention-backend",
      "prefill-attention-backend",  "--decode-attention-backend", "decode-attention-backend"};
  return std::ranges::any_of(kNames, [&](std::string_view name) {
    const Written* written = FirstWritten(program, {name});
    return written != nullptr && ForcesSize(written->value);
  });
}

void ReadParallel(const Program& program, EngineSettings& out) {
  out.tensor_parallel =
      RanksOf(program, {"--tensor-parallel-size", "-tp", "--tp-size", "--tp",
                        "tensor-parallel-size", "tp-size", "DYN_TRTLLM_TENSOR_PARALLEL_SIZE"});
  out.pipeline_parallel = RanksOf(program, {"--pipeline-parallel-size", "-pp", "--pp-size", "--pp",
                                            "pipeline-parallel-size", "pp-size"});
  out.data_parallel = RanksOf(program, {"--data-parallel-size", "-dp", "--dp-size", "--dp",
                                        "data-parallel-size", "dp-size"});
}

void ReadVllm(const Program& program, EngineSettings& out) {
  auto size = Default<uint64_t>(program, 16);
  if (BackendForcesSize(program)) size.reset();
  out.block_size = Narrowed<uint32_t>(CountOf(program, {"--block-size", "block-size"}, size));
  Multiply(out.block_size, RanksOf(program, {"--decode-context-parallel-size", "-dcp",
                                             "decode-context-parallel-size"}));
  out.prefix_caching =
      OppositeOf(program, {"--no-enable-prefix-caching", "no-enable-prefix-caching"}, std::nullopt);
  if (!out.prefix_caching.written) {
    out.prefix_caching = SwitchOf(program, {"--enable-prefix-caching", "enable-prefix-caching"},
                                  Default(program, true));
  }
  std::optional<double> fraction;
  const auto old = IsOlder(EngineVersionOf(program), "0.20");
  if (old && !program.unseen_file) fraction = *old ? 0.9 : 0.92;
  out.memory_fraction =
      NumberOf(program, {"--gpu-memory-utilization", "gpu-memory-utilization"}, fraction);
  out.max_sequences = CountOf(program, {"--max-num-seqs", "max-num-seqs"});
  out.batch_tokens = CountOf(program, {"--max-num-batched-tokens", "max-num-batched-tokens"});
  out.context_length = CountOf(program, {"--max-model-len", "max-model-len"});
  out.kv_dtype = TextOf(program, {"--kv-cache-dtype", "kv-cache-dtype"},
                        Default(program, std::string("auto")));
  out.offload =
      TextOf(program, {"--kv-offloading-size", "kv-offloading-size", "DYN_KVBM_CPU_CACHE_GB"});
}

void ReadSglang(const Program& program, EngineSettings& out) {
  auto size = Default<uint64_t>(program, 1);
  if (BackendForcesSize(program)) size.reset();
  out.block_size = Narrowed<uint32_t>(CountOf(program, {"--page-size", "page-size"}, size));
  Multiply(out.block_size, RanksOf(program, {"--dcp-size", "dcp-size"}));
  out.prefix_caching =
      OppositeOf(program, {"--disable-radix-cache", "disable-radix-cache"}, Default(program, true));
  out.memory_fraction = NumberOf(program, {"--mem-fraction-static", "mem-fraction-static"});
  out.max_sequences = CountOf(program, {"--max-running-requests", "max-running-requests"});
  out.batch_tokens = CountOf(program, {"--chunked-prefill-size", "chunked-prefill-size"});
  out.context_length = CountOf(program, {"--context-length", "context-length"});
  out.kv_dtype = TextOf(program, {"--kv-cache-dtype", "kv-cache-dtype"},
                        Default(program, std::string("auto")));
  out.offload =
      TextOf(program, {"--hicache-size", "--hicache-ratio", "hicache-size", "hicache-ratio"});
}

void ReadTrtllm(const Program& program, EngineSettings& out) {
  out.block_size = Narrowed<uint32_t>(
      CountOf(program, {"kv_cache_config.tokens_per_block"}, Default<uint64_t>(program, 32)));
  if (program.dynamo) {
    out.worker_block_size =
        Narrowed<uint32_t>(CountOf(program, {"--kv-block-size", "DYN_TRTLLM_KV_BLOCK_SIZE"}));
  }
  // Nobody sets it but to say what is in a file that is not here.
  if (program.unseen_file && !out.block_size.written) out.block_size = out.worker_block_size;
  out.prefix_caching =
      SwitchOf(program, {"kv_cache_config.enable_block_reuse"}, Default(program, true));
  // Dynamo's worker asks for a buffer itself when it is to publish.
  const auto buffer = program.dynamo ? std::nullopt : Default<uint64_t>(program, 0);
  out.event_buffer = CountOf(program, {"kv_cache_config.event_buffer_max_size"}, buffer);
  out.memory_fraction =
      NumberOf(program,
               {"kv_cache_config.free_gpu_memory_fraction", "--kv_cache_free_gpu_memory_fraction",
                "--free-gpu-memory-fraction", "DYN_TRTLLM_FREE_GPU_MEMORY_FRACTION"},
               Default(program, 0.9));
  out.max_sequences =
      CountOf(program, {"max_batch_size", "--max_batch_size", "DYN_TRTLLM_MAX_BATCH_SIZE"});
  out.batch_tokens =
      CountOf(program, {"max_num_tokens", "--max_num_tokens", "DYN_TRTLLM_MAX_NUM_TOKENS"});
  out.context_length = CountOf(program, {"max_seq_len", "--max_seq_len", "DYN_TRTLLM_MAX_SEQ_LEN"});
  out.kv_dtype = TextOf(program, {"kv_cache_config.dtype"}, Default(program, std::string("auto")));
  out.offload = TextOf(program, {"kv_cache_config.host_cache_size", "DYN_KVBM_CPU_CACHE_GB"});
}

// Dynamo's workers have no API of their own.
std::optional<uint64_t> DefaultPort(const Program& program) {
  if (program.dynamo || program.engine == EngineKind::kUnknown) return std::nullopt;
  return program.engine == EngineKind::kSglang ? 30000 : 8000;
}

}  // namespace

EngineSettings EngineSettingsOf(const Program& program) {
  EngineSettings out;
  switch (program.engine) {
    case EngineKind::kVllm:
      ReadVllm(program, out);
      break;
    case EngineKind::kSglang:
      ReadSglang(program, out);
      break;
    case EngineKind::kTrtllm:
      ReadTrtllm(program, out);
      break;
    case EngineKind::kUnknown:
      out.block_size = Narrowed<uint32_t>(CountOf(program, {"--block-size"}));
      break;
  }
  ReadParallel(program, out);
  out.publisher = PublisherSettingsOf(program);
  out.port = Narrowed<uint16_t>(CountOf(program, {"--port", "port"}, DefaultPort(program)));
  const Written* model = FirstWritten(
      program, {"--model", "--model-path", "model", "model-path", "DYN_TRTLLM_MODEL_PATH"});
  if (model != nullptr) out.model = model->value;
  return out;
}

}  // namespace fathom
