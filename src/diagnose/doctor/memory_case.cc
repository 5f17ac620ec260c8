#include "diagnose/doctor/memory_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "diagnose/manifest/engine_settings.h"

namespace fathom {
namespace {

// Where nobody says how long people think between two turns.
constexpr Duration kUsualTurnGap = std::chrono::seconds(30);
constexpr uint64_t kHostOffload = uint64_t{64} << 30;

class CaseBuilder {
 public:
  CaseBuilder(const CaseFile& seen, const Program* program, const LookedAtWorker* worker)
      : seen_(seen), worker_(worker) {
    case_.program = program;
    if (program != nullptr) settings_ = EngineSettingsOf(*program);
  }

  MemoryCase Build() {
    Identify();
    if (worker_ != nullptr) case_.capacity = CapacityFrom(worker_->look.report);
    if (case_.capacity) {
      case_.grounds.push_back(fmt::format("capacity reported by {}", worker_->look.url));
    }
    GatherWorkload();
    Reckoned();
    if (!case_.capacity) CapacityFromLogs();
    if (case_.capacity) case_.demand = ReckonDemand(*case_.capacity, case_.workload);
    SayWhatIsMissing();
    return std::move(case_);
  }

 private:
  void Identify() {
    const StatedCase& stated = seen_.stated;
    case_.engine = worker_ != nullptr && worker_->look.report.engine != EngineKind::kUnknown
                       ? worker_->look.report.engine
                   : case_.program != nullptr ? case_.program->engine
                                              : stated.engine;
    if (case_.engine == EngineKind::kUnknown) case_.engine = stated.engine;
    case_.who = worker_ != nullptr         ? worker_->look.url
                : case_.program != nullptr ? case_.program->name
                                           : "stated";
  }

  uint32_t Parallel(uint32_t stated, uint32_t written) const {
    return stated != 0 ? stated : std::max(1u, written);
  }

  Result<SizingCase> Sizing() const {
    const StatedCase& stated = seen_.stated;
    if (!seen_.model) {
      return Fail(Blame::kCaller,
                  "the model's shape is unknown; give it with --model-config config.json");
    }
    SizingCase sizing;
    sizing.shape = *seen_.model;
    TRY(sizing.gpu, TheGpu());
    sizing.layout.engine = case_.engine;
    sizing.layout.parallel.tensor = Parallel(stated.tensor_parallel, settings_.tensor_parallel);
    sizing.layout.parallel.pipeline =
        Parallel(stated.pipeline_parallel, settings_.pipeline_parallel);
    sizing.layout.parallel.data = Parallel(stated.data_parallel, settings_.data_parallel);
    // A model of experts with data-parallel ranks has them spread, or it would not be run so.
    sizing.layout.parallel.expert_parallel = SpreadsExperts() || sizing.layout.parallel.data > 1;
    TRY(const auto dtype, ParseKvDtype(DtypeWord()));
    sizing.layout.dtype = dtype.value_or(seen_.model->AutoKvDtype());
    sizing.memory = Memory();
    sizing.workload = case_.workload;
    sizing.observed = case_.capacity;
    return sizing;
  }

  Result<Gpu> TheGpu() const {
    if (!seen_.stated.gpu.empty()) return ParseGpu(seen_.stated.gpu);
    for (const GpuReading& reading : seen_.gpus) {
      if (!reading.total) continue;
      std::optional<uint64_t> seen;
      if (reading.used && reading.free) seen = *reading.used + *reading.free;
      return MeasuredGpu(reading.name, *reading.total, seen);
    }
    return Fail(Blame::kCaller, "the GPU is unknown; give it with --gpu NAME or --nvidia-smi FILE");
  }

  std::string DtypeWord() const {
    if (!seen_.stated.kv_dtype.empty()) return seen_.stated.kv_dtype;
    if (settings_.kv_dtype.value) return *settings_.kv_dtype.value;
    if (worker_ != nullptr && !worker_->look.levels.cache_dtype.empty()) {
      return worker_->look.levels.cache_dtype;
    }
    return "auto";
  }

  // The version that a file shows is then Dynamo's, and says nothing of the engine's defaults.
  bool IsDynamos() const { return case_.program == nullptr || case_.program->dynamo; }

  bool SpreadsExperts() const {
    return case_.program != nullptr &&
           (case_.program->Flag("--enable-expert-parallel") != nullptr ||
            case_.program->Flag("--ep-size") != nullptr ||
            case_.program->Key("moe_expert_parallel_size") != nullptr);
  }

  EngineMemory Memory() const {
    EngineMemory memory;
    const StatedCase& stated = seen_.stated;
    if (stated.memory_fraction > 0) {
      memory.fraction = stated.memory_fraction;
    } else if (settings_.memory_fraction.written || !IsDynamos()) {
      memory.fraction = settings_.memory_fraction.value;
    }
    if (stated.block_size != 0) {
      memory.block_size = stated.block_size;
    } else if (settings_.block_size.value) {
      memory.block_size = *settings_.block_size.value;
    }
    if (settings_.batch_tokens.value) memory.batch_tokens = *settings_.batch_tokens.value;
    memory.max_sequences = MaxSequences();
    return memory;
  }

  std::optional<uint64_t> MaxSequences() const {
    if (seen_.stated.max_sequences != 0) return seen_.stated.max_sequences;
    if (settings_.max_sequences.value) return *settings_.max_sequences.value;
    if (worker_ != nullptr && worker_->look.report.max_running > 0) {
      return worker_->look.report.max_running;
    }
    return std::nullopt;
  }

  double Replicas() const {
    if (seen_.stated.replicas != 0) return static_cast<double>(seen_.stated.replicas);
    if (!seen_.live.workers.empty()) return static_cast<double>(seen_.live.workers.size());
    if (seen_.live.router && !seen_.live.router->workers.empty()) {
      return static_cast<double>(seen_.live.router->workers.size());
    }
    uint64_t replicas = 0;
    for (const Program& program : seen_.deployment.programs) {
      if (program.role == ProgramRole::kEngine) replicas += program.replicas;
    }
    return std::max<double>(1, static_cast<double>(replicas));
  }

  void Ground(const char* what, double value, std::string_view from) {
    case_.grounds.push_back(fmt::format("{} {:.1f}, {}", what, value, from));
  }

  // The first of these that is known.
  void GatherWorkload() {
    const StatedCase& stated = seen_.stated;
    Workload& load = case_.workload;
    load.max_sequences = MaxSequences();
    if (stated.concurrency > 0) {
      load.sequences = stated.concurrency / Replicas();
      Ground("running sequences", load.sequences, "as stated, divided among the workers");
    } else if (worker_ != nullptr && worker_->look.levels.running) {
      load.sequences = *worker_->look.levels.running;
      Ground("running sequences", load.sequences, "as the engine reports now");
    } else if (const double most = MostRunningInLogs(); most > 0) {
      load.sequences = most;
      Ground("running sequences", most, "the maximum in a log");
    }
    GatherLengths();
    GatherRate();
    load.between_turns = stated.turn_gap > Duration{} ? stated.turn_gap : kUsualTurnGap;
    if (stated.turn_gap <= Duration{}) {
      case_.grounds.emplace_back("30 s between turns, assumed; set it with --turn-gap");
    }
  }

  double MostRunningInLogs() const {
    uint64_t most = 0;
    for (const ReadLog& log : seen_.logs) most = std::max(most, log.facts.engines.max_running);
    return static_cast<double>(most);
  }

  void GatherLengths() {
    const StatedCase& stated = seen_.stated;
    Workload& load = case_.workload;
    if (stated.prompt_tokens > 0) {
      load.prompt_tokens = stated.prompt_tokens;
      Ground("prompt tokens", load.prompt_tokens, "as stated");
    } else if (worker_ != nullptr && worker_->look.counts.prompt_length.count > 0) {
      load.prompt_tokens = worker_->look.counts.prompt_length.Mean();
      Ground("prompt tokens", load.prompt_tokens, "the mean counted by the engine");
    } else if (seen_.live.router && seen_.live.router->decisions.looked_at > 0) {
      const RecentDecisions& recent = seen_.live.router->decisions;
      load.prompt_tokens =
          static_cast<double>(recent.prompt_tokens) / static_cast<double>(recent.looked_at);
      Ground("prompt tokens", load.prompt_tokens, "the mean of the router's latest decisions");
    }
    if (stated.output_tokens > 0) {
      load.output_tokens = stated.output_tokens;
      Ground("output tokens", load.output_tokens, "as stated");
    } else if (worker_ != nullptr && worker_->look.counts.answer_length.count > 0) {
      load.output_tokens = worker_->look.counts.answer_length.Mean();
      Ground("output tokens", load.output_tokens, "the mean counted by the engine");
    }
  }

  void GatherRate() {
    Workload& load = case_.workload;
    // What a probe sends is not what the fleet lives with.
    const bool measured = worker_ != nullptr && worker_->meanwhile && worker_->seconds > 0 &&
                          worker_->meanwhile->prompt_tokens && !seen_.probe;
    if (measured) {
      const EngineCounts& counts = *worker_->meanwhile;
      const double computed = std::max(0.0, *counts.prompt_tokens - counts.prefix_hits.value_or(0));
      load.new_tokens_per_second =
          (computed + counts.generated_tokens.value_or(0)) / worker_->seconds;
      Ground("new tokens per second", *load.new_tokens_per_second, "measured while listening");
    } else if (seen_.stated.request_rate > 0) {
      load.requests_per_second = seen_.stated.request_rate / Replicas();
      Ground("requests per second", *load.requests_per_second,
             "as stated, divided among the workers; estimated without cache hits");
    }
  }

  void Reckoned() {
    const auto sizing = Sizing();
    if (!sizing) {
      case_.budget_problem = sizing.error().what;
      return;
    }
    const auto now = Reckon(*sizing, {});
    if (!now) {
      case_.budget_problem = now.error().what;
      return;
    }
    case_.budget = now->budget;
    if (sizing->layout.parallel.data > 1 && seen_.model->parameters.experts > 0 &&
        !SpreadsExperts()) {
      case_.grounds.emplace_back("experts spread over all data-parallel ranks, assumed");
    }
    if (!case_.capacity && now->budget.cache_bytes > 0) case_.capacity = now->budget.capacity;
    if (case_.capacity && now->budget.cache_bytes > 0) TryChanges(*sizing, *now);
  }

  void TryChanges(const SizingCase& sizing, const SizingOutcome& now) {
    const double fraction = now.budget.fraction;
    if (fraction < 0.95) {
      const double more = std::min(0.95, fraction + 0.05);
      Try(sizing, MemoryChange::Kind::kFraction, fmt::format("{:.2f}", more), {.fraction = more});
    }
    if (BytesPerElement(sizing.layout.dtype) > 1) {
      Try(sizing, MemoryChange::Kind::kDtype, "fp8", {.kv_dtype = KvDtype::kFp8});
    }
    Try(sizing, MemoryChange::Kind::kHost, "64 GiB", {.host_bytes = kHostOffload});
    if (case_.workload.max_sequences && *case_.workload.max_sequences > 1 &&
        case_.workload.sequences > static_cast<double>(*case_.workload.max_sequences) / 2) {
      const uint64_t fewer = *case_.workload.max_sequences / 2;
      Try(sizing, MemoryChange::Kind::kSequences, std::to_string(fewer), {.max_sequences = fewer});
    }
    std::ranges::sort(case_.changes, std::greater<>(), [](const MemoryChange& change) {
      return std::tuple(change.outcome.demand.in_time.value_or(0),
                        change.outcome.demand.retained_tokens, change.kind);
    });
  }

  void Try(const SizingCase& sizing, MemoryChange::Kind kind, std::string value,
           const WhatIf& change) {
    const auto outcome = Reckon(sizing, change);
    if (outcome) case_.changes.push_back({kind, std::move(value), *outcome});
  }

  void CapacityFromLogs() {
    for (const ReadLog& log : seen_.logs) {
      if (log.facts.engines.kv_tokens.low == 0) continue;
      // TensorRT-LLM first says what its dry run had, which is less.
      const bool trtllm = log.facts.engines.tokens_per_block.low > 0;
      KvCapacity capacity;
      capacity.tokens = trtllm ? log.facts.engines.kv_tokens.high : log.facts.engines.kv_tokens.low;
      capacity.observed = true;
      case_.capacity = capacity;
      case_.grounds.push_back(fmt::format("capacity in {} at the engine's startup", log.name));
      return;
    }
  }

  void SayWhatIsMissing() {
    const Workload& load = case_.workload;
    if (!case_.capacity) {
      case_.missing.emplace_back(
          "KV cache capacity: " +
          (case_.budget_problem.empty()
               ? std::string("--worker URL asks the engine")
               : case_.budget_problem + "; or --worker URL asks the engine"));
    }
    if (load.sequences <= 0) {
      case_.missing.emplace_back("running sequences (--worker URL or --concurrency N)");
    }
    if (load.prompt_tokens <= 0) {
      case_.missing.emplace_back("prompt lengths (--worker URL or --prompt-tokens N)");
    }
    if (!load.new_tokens_per_second && !load.requests_per_second) {
      case_.missing.emplace_back(
          "rate of new tokens (--worker URL with --listen TIME, or --request-rate X)");
    }
  }

  const CaseFile& seen_;
  const LookedAtWorker* worker_;
  EngineSettings settings_;
  MemoryCase case_;
};

}  // namespace

std::vector<MemoryCase> MemoryCasesOf(const CaseFile& seen) {
  std::vector<const Program*> engines;
  for (const Program& program : seen.deployment.programs) {
    if (program.role == ProgramRole::kEngine) engines.push_back(&program);
  }
  std::vector<MemoryCase> cases;
  for (const LookedAtWorker& worker : seen.live.workers) {
    if (!worker.look.reached || cases.size() == kMaxMemoryCases) continue;
    const Program* const program = engines.size() == 1 ? engines.front() : nullptr;
    cases.push_back(CaseBuilder(seen, program, &worker).Build());
  }
  if (!cases.empty()) return cases;
  for (const Program* const program : engines) {
    if (cases.size() < kMaxMemoryCases)
      cases.push_back(CaseBuilder(seen, program, nullptr).Build());
  }
  if (!cases.empty()) return cases;
  const bool logged = std::ranges::any_of(
      seen.logs, [](const ReadLog& log) { return log.facts.engines.kv_tokens.low > 0; });
  if (seen.model || logged) cases.push_back(CaseBuilder(seen, nullptr, nullptr).Build());
  return cases;
}

}  // namespace fathom
