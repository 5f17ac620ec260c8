#include "diagnose/doctor/memory_diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "diagnose/doctor/remedies.h"
#include "diagnose/manifest/engine_settings.h"

namespace fathom {
namespace {

constexpr double kLowFraction = 0.1;  // that much below the engine's default
constexpr double kUnusedShare = 0.2;  // of a GPU that runs an engine
constexpr double kMostFraction = 0.95;

double InSeconds(Duration time) { return std::chrono::duration<double>(time).count(); }

// How each engine spells it.
struct Spelling {
  std::string flag;  // "--gpu-memory-utilization"; empty: a key
  std::string key;   // "kv_cache_config.free_gpu_memory_fraction"
};

Spelling SpellingOf(EngineKind engine, MemoryChange::Kind kind) {
  const bool trtllm = engine == EngineKind::kTrtllm;
  switch (kind) {
    case MemoryChange::Kind::kFraction:
      if (trtllm) return {.flag = {}, .key = "kv_cache_config.free_gpu_memory_fraction"};
      return {.flag = engine == EngineKind::kSglang ? "--mem-fraction-static"
                                                    : "--gpu-memory-utilization",
              .key = {}};
    case MemoryChange::Kind::kDtype:
      if (trtllm) return {.flag = {}, .key = "kv_cache_config.dtype"};
      return {.flag = "--kv-cache-dtype", .key = {}};
    case MemoryChange::Kind::kSequences:
      if (trtllm) return {.flag = {}, .key = "max_batch_size"};
      return {.flag = engine == EngineKind::kSglang ? "--max-running-requests" : "--max-num-seqs",
              .key = {}};
    case MemoryChange::Kind::kHost:
      break;  // takes more than one setting; remedies.cc has the words
  }
  return {};
}

std::string ValueFor(EngineKind engine, const MemoryChange& change) {
  const bool sglang_type =
      engine == EngineKind::kSglang && change.kind == MemoryChange::Kind::kDtype;
  return sglang_type ? "fp8_e4m3" : change.value;
}

std::string DiffOf(const CaseFile& seen, const MemoryCase& memory, const Spelling& spelling,
                   const std::string& value) {
  if (memory.program == nullptr) return {};
  const auto file = std::ranges::find(seen.files, memory.program->place.file, &SourceFile::name);
  if (file == seen.files.end()) return {};
  const auto edit = spelling.key.empty() ? SetFlag(*file, *memory.program, spelling.flag, value)
                                         : SetKey(*file, *memory.program, spelling.key, value, "");
  if (!edit) return {};
  const auto edited = std::ranges::find(seen.files, edit->file, &SourceFile::name);
  if (edited == seen.files.end()) return {};
  return DiffToPassOn(*edited, Apply(*edited, {&*edit, 1}));
}

// "kv_cache_config.dtype" as it stands in a file.
std::string KeyText(const std::string& dotted, const std::string& value) {
  const size_t dot = dotted.find('.');
  if (dot == std::string::npos) return fmt::format("{}: {}", dotted, value);
  return fmt::format("{}:\n  {}: {}", dotted.substr(0, dot), dotted.substr(dot + 1), value);
}

class MemoryDiagnosis {
 public:
  MemoryDiagnosis(const CaseFile& seen, const MemoryCase& memory, FindingBook& book)
      : seen_(seen), memory_(memory), book_(book) {}

  void Run() {
    if (memory_.budget && memory_.budget->cache_bytes == 0) {
      DoesNotFit();
      return;
    }
    LookAtFraction();
    if (memory_.demand) LookAtDemand(*memory_.demand);
  }

 private:
  Finding Found(FindingId id, std::string message) const {
    Finding finding = MakeFinding(id, memory_.who, std::move(message));
    if (memory_.program != nullptr) finding.place = memory_.program->place;
    return finding;
  }

  void DoesNotFit() {
    Finding finding =
        Found(FindingId::kModelDoesNotFit,
              fmt::format("The model does not fit: each GPU lacks {} before any token is cached",
                          BytesText(memory_.budget->missing_bytes)));
    finding.evidence.push_back(memory_.budget->formula);
    finding.why = "The engine does not start, or has almost no KV cache";
    finding.gain = 1;
    finding.fixes = RemediesFor(finding.id, {.engine = memory_.engine});
    book_.Add(std::move(finding));
  }

  void LookAtFraction() {
    if (memory_.program == nullptr) return;
    const EngineSettings settings = EngineSettingsOf(*memory_.program);
    const double usual = memory_.engine == EngineKind::kSglang ? 0.82 : 0.9;
    const auto& fraction = settings.memory_fraction;
    if (!fraction.written || !fraction.value || *fraction.value > usual - kLowFraction) return;
    Finding finding =
        Found(FindingId::kMemoryFractionLow,
              fmt::format("{} gives the engine {:.0f} % of the GPU's memory; {:.0f} % is usual",
                          fraction.written->name, 100 * *fraction.value, 100 * usual));
    finding.place = fraction.written->place;
    finding.why = "Memory that the engine may not use cannot hold cached prefixes";
    finding.evidence.push_back(fmt::format("{}: {} = {}", ToText(fraction.written->place),
                                           fraction.written->name, fraction.written->value));
    if (memory_.budget) finding.evidence.push_back(memory_.budget->formula);
    finding.gain = 0.2;
    for (const MemoryChange& change : memory_.changes) {
      if (change.kind == MemoryChange::Kind::kFraction) finding.fixes.push_back(FixBy(change));
    }
    if (finding.fixes.empty()) {
      finding.fixes = RemediesFor(finding.id, {.engine = memory_.engine});
      finding.fixes.front().diff =
          DiffOf(seen_, memory_, SpellingOf(memory_.engine, MemoryChange::Kind::kFraction),
                 fmt::format("{:.2f}", usual));
    }
    book_.Add(std::move(finding));
  }

  void LookAtDemand(const KvDemand& demand) {
    const KvCapacity& capacity = *memory_.capacity;
    const double tokens = static_cast<double>(capacity.tokens);
    if (demand.overcommitted(capacity)) {
      Pressed(fmt::format("Running requests alone need {} tokens of KV cache; the capacity is {}",
                          Thousands(demand.active_tokens), Thousands(tokens)),
              1);
    } else if (demand.verdict == Retention::kGone || demand.verdict == Retention::kTight) {
      Pressed(fmt::format("A cached block lives {:.0f} s, but the next turn comes after {:.0f} s: "
                          "{:.0f} % of follow-up turns find their blocks",
                          InSeconds(*demand.lifetime), InSeconds(*memory_.workload.between_turns),
                          100 * demand.in_time.value_or(0)),
              1 - demand.in_time.value_or(0));
    } else if (demand.verdict == Retention::kUnknown && memory_.workload.max_sequences &&
               demand.worst_tokens > tokens) {
      Pressed(fmt::format("The settings allow {} sequences at once, which would need {} tokens of "
                          "KV cache; the capacity is {}",
                          *memory_.workload.max_sequences, Thousands(demand.worst_tokens),
                          Thousands(tokens)),
              0.1);
    }
  }

  void Pressed(std::string message, double gain) {
    const KvDemand& demand = *memory_.demand;
    Finding finding = Found(FindingId::kMemoryPressure, std::move(message));
    finding.why =
        "A conversation's blocks are evicted before its next turn, so that turn is prefilled from "
        "its first token on any worker";
    finding.evidence.push_back(fmt::format(
        "{}: capacity {} tokens, {} used by running sequences, {} left for cached prefixes",
        memory_.who, Thousands(static_cast<double>(memory_.capacity->tokens)),
        Thousands(demand.active_tokens), Thousands(demand.retained_tokens)));
    if (demand.new_tokens_per_second > 0) {
      finding.evidence.push_back(fmt::format("{} new tokens per second are written",
                                             Thousands(demand.new_tokens_per_second)));
    }
    for (const std::string& ground : memory_.grounds) finding.evidence.push_back(ground);
    finding.gain = std::clamp(gain, 0.0, 1.0);
    finding.gain_basis = "share of follow-up turns whose blocks are evicted before they come";
    for (const MemoryChange& change : memory_.changes) finding.fixes.push_back(FixBy(change));
    const auto general = RemediesFor(finding.id, {.engine = memory_.engine});
    if (finding.fixes.empty()) {
      finding.fixes = general;
    } else if (general.size() > 4) {
      finding.fixes.push_back(general[3]);  // the eviction policy, which no arithmetic weighs
    }
    AddFewerSequences(finding);
    book_.Add(std::move(finding));
  }

  // What running requests may hold at most, so that a third of the cache stays for retention.
  void AddFewerSequences(Finding& finding) const {
    const Workload& load = memory_.workload;
    const double each = load.prompt_tokens + load.output_tokens;
    if (!load.max_sequences || each <= 0) return;
    const double fit = std::floor(static_cast<double>(memory_.capacity->tokens) * 2 / 3 / each);
    if (fit < 1 || fit >= static_cast<double>(*load.max_sequences)) return;
    const std::string value = fmt::format("{:.0f}", fit);
    const Spelling spelling = SpellingOf(memory_.engine, MemoryChange::Kind::kSequences);
    finding.fixes.push_back(
        {.what = fmt::format("Run at most {} sequences at once: a third of the cache is then left "
                             "for cached prefixes",
                             value),
         .setting = spelling.key.empty() ? fmt::format("{} {}", spelling.flag, value)
                                         : KeyText(spelling.key, value),
         .diff = DiffOf(seen_, memory_, spelling, value),
         .cost = "requests wait in the queue at peak load",
         .verify = "preemptions stop, and cached blocks live longer than the time between turns"});
  }

  Fix FixBy(const MemoryChange& change) const {
    const Spelling spelling = SpellingOf(memory_.engine, change.kind);
    const std::string value = ValueFor(memory_.engine, change);
    Fix fix = WordsFor(change);
    if (!spelling.flag.empty() || !spelling.key.empty()) {
      fix.setting = spelling.key.empty() ? fmt::format("{} {}", spelling.flag, value)
                                         : KeyText(spelling.key, value);
      fix.diff = DiffOf(seen_, memory_, spelling, value);
    }
    fix.what += ": " + Effect(change);
    return fix;
  }

  Fix WordsFor(const MemoryChange& change) const {
    const auto general = RemediesFor(FindingId::kMemoryPressure, {.engine = memory_.engine});
    // In the order of RemediesFor: memory, type, host, and at last sequences.
    switch (change.kind) {
      case MemoryChange::Kind::kFraction:
        return general[0];
      case MemoryChange::Kind::kDtype:
        return general[1];
      case MemoryChange::Kind::kHost:
        return general[2];
      case MemoryChange::Kind::kSequences:
        return general.back();
    }
    return {};
  }

  std::string Effect(const MemoryChange& change) const {
    const KvDemand& then = change.outcome.demand;
    std::string text = fmt::format("memory for cached prefixes {} to {} tokens",
                                   Thousands(memory_.demand ? memory_.demand->retained_tokens : 0),
                                   Thousands(then.retained_tokens));
    if (memory_.demand && memory_.demand->in_time && then.in_time) {
      text += fmt::format(", follow-up turns that find their blocks {:.0f} to {:.0f} %",
                          100 * *memory_.demand->in_time, 100 * *then.in_time);
    }
    return text;
  }

  const CaseFile& seen_;
  const MemoryCase& memory_;
  FindingBook& book_;
};

// Memory that lies idle on GPUs that run an engine.
void LookAtGpus(const CaseFile& seen, FindingBook& book) {
  for (const GpuReading& gpu : seen.gpus) {
    if (!gpu.total || !gpu.used || *gpu.total == 0) continue;
    const double total = static_cast<double>(*gpu.total);
    const double used = static_cast<double>(*gpu.used) / total;
    const bool runs_an_engine = used > 0.3;
    if (!runs_an_engine || used > kMostFraction - kUnusedShare) continue;
    Finding finding =
        MakeFinding(FindingId::kMemoryFractionLow, fmt::format("GPU {} {}", gpu.gpu, gpu.host),
                    fmt::format("{:.0f} % of a GPU's memory is unused", 100 * (1 - used)));
    finding.why = "Memory that the engine may not use cannot hold cached prefixes";
    finding.evidence.push_back(fmt::format("GPU {} ({}): {} of {} used", gpu.gpu, gpu.name,
                                           BytesText(*gpu.used), BytesText(*gpu.total)));
    finding.gain = 0.15;
    finding.fixes = RemediesFor(finding.id, {.engine = seen.stated.engine});
    book.Add(std::move(finding));
  }
}

}  // namespace

std::string Thousands(double number) {
  std::string digits = fmt::format("{:.0f}", number);
  const size_t start = digits.starts_with('-') ? 1 : 0;
  for (size_t at = digits.size(); at > start + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

void DiagnoseMemory(const CaseFile& seen, const std::vector<MemoryCase>& cases, FindingBook& book) {
  for (const MemoryCase& memory : cases) MemoryDiagnosis(seen, memory, book).Run();
  LookAtGpus(seen, book);
}

}  // namespace fathom
