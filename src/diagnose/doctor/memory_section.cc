#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "diagnose/doctor/cells.h"
#include "diagnose/doctor/memory_diagnosis.h"
#include "diagnose/doctor/sections.h"

namespace fathom {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

std::string TimeText(Duration time) {
  const double seconds = std::chrono::duration<double>(time).count();
  if (seconds >= 48 * 3600) return "days";
  if (seconds >= 7200) return fmt::format("{:.1f} h", seconds / 3600);
  if (seconds >= 120) return fmt::format("{:.1f} min", seconds / 60);
  return fmt::format("{:.1f} s", seconds);
}

Tone ToneOf(Retention verdict) {
  switch (verdict) {
    case Retention::kComfortable:
      return Tone::kGood;
    case Retention::kTight:
      return Tone::kDoubtful;
    case Retention::kGone:
      return Tone::kBad;
    case Retention::kUnknown:
      break;
  }
  return Tone::kFaint;
}

Table BudgetTable(const std::vector<MemoryCase>& cases) {
  Table table;
  table.title = "KV cache of one rank";
  table.columns = {"engine",  "per token",       "capacity",       "blocks",
                   "running", "cached prefixes", "block lifetime", "in time"};
  for (const MemoryCase& memory : cases) {
    const auto& demand = memory.demand;
    const bool used = demand && memory.workload.sequences > 0 && memory.workload.prompt_tokens > 0;
    table.rows.push_back(
        {Plain(memory.who),
         memory.budget ? Plain(BytesText(memory.budget->cost.BytesPerToken())) : Faint("?"),
         memory.capacity
             ? Plain(Thousands(static_cast<double>(memory.capacity->tokens)) + " tokens")
             : Faint("?"),
         memory.capacity && memory.capacity->blocks > 0
             ? Plain(fmt::format("{} x {}", Thousands(static_cast<double>(memory.capacity->blocks)),
                                 memory.capacity->block_size))
             : Faint("?"),
         used ? Plain(Thousands(demand->active_tokens)) : Faint("?"),
         used ? Plain(Thousands(demand->retained_tokens)) : Faint("?"),
         demand && demand->lifetime ? Plain(TimeText(*demand->lifetime)) : Faint("?"),
         demand && demand->in_time
             ? Cell{fmt::format("{:.0f} %", 100 * *demand->in_time), ToneOf(demand->verdict)}
             : Faint("?")});
  }
  return table;
}

// Where the memory of one GPU goes.
Plot MemoryPlot(const std::vector<MemoryCase>& cases) {
  Plot plot;
  plot.title = "Memory of one GPU";
  plot.y_label = "GiB";
  plot.series = {{.name = "weights", .x = {}, .y = {}, .tone = Tone::kFaint},
                 {.name = "overhead (assumed)", .x = {}, .y = {}, .tone = Tone::kPlain},
                 {.name = "KV of running requests", .x = {}, .y = {}, .tone = Tone::kDoubtful},
                 {.name = "KV for cached prefixes", .x = {}, .y = {}, .tone = Tone::kGood},
                 {.name = "not used by the engine", .x = {}, .y = {}, .tone = Tone::kBad}};
  for (const MemoryCase& memory : cases) {
    if (!memory.budget) continue;
    const KvBudget& budget = *memory.budget;
    const double cache = static_cast<double>(budget.cache_bytes);
    double active = 0;
    if (memory.demand && memory.capacity && memory.capacity->tokens > 0) {
      active = cache * std::min(1.0, memory.demand->active_tokens /
                                         static_cast<double>(memory.capacity->tokens));
    }
    const double taken =
        static_cast<double>(budget.weight_bytes) + static_cast<double>(budget.overhead_bytes);
    const double rest = std::max(0.0, static_cast<double>(budget.gpu_bytes) - taken - cache);
    plot.categories.push_back(memory.who);
    const double parts[] = {static_cast<double>(budget.weight_bytes),
                            static_cast<double>(budget.overhead_bytes), active, cache - active,
                            rest};
    for (size_t i = 0; i < plot.series.size(); ++i) {
      plot.series[i].y.push_back(parts[i] / kGiB);
    }
    plot.caption = fmt::format("{}: {} of {} is left for the KV cache.", memory.who,
                               BytesText(budget.cache_bytes), BytesText(budget.gpu_bytes));
  }
  return plot;
}

Table ChangeTable(const std::vector<MemoryCase>& cases) {
  Table table;
  table.title = "Effect of other settings";
  table.columns = {"engine", "change", "capacity", "cached prefixes", "block lifetime", "in time"};
  constexpr std::string_view kNames[] = {"memory fraction", "KV cache type", "host memory",
                                         "sequences at once"};
  for (const MemoryCase& memory : cases) {
    for (const MemoryChange& change : memory.changes) {
      const KvDemand& demand = change.outcome.demand;
      table.rows.push_back(
          {Plain(memory.who),
           Plain(fmt::format("{} {}", kNames[static_cast<size_t>(change.kind)], change.value)),
           Plain(Thousands(static_cast<double>(change.outcome.budget.capacity.tokens))),
           Plain(Thousands(demand.retained_tokens)),
           demand.lifetime ? Plain(TimeText(*demand.lifetime)) : Faint("?"),
           demand.in_time
               ? Cell{fmt::format("{:.0f} %", 100 * *demand.in_time), ToneOf(demand.verdict)}
               : Faint("?")});
    }
  }
  return table;
}

Table GpuTable(const std::vector<GpuReading>& gpus) {
  Table table;
  table.title = "GPUs";
  table.columns = {"gpu", "name", "host", "used", "total", "busy"};
  for (const GpuReading& gpu : gpus) {
    table.rows.push_back({Plain(gpu.gpu), Plain(gpu.name), Plain(gpu.host),
                          gpu.used ? Plain(BytesText(*gpu.used)) : Faint("?"),
                          gpu.total ? Plain(BytesText(*gpu.total)) : Faint("?"),
                          gpu.busy ? Plain(fmt::format("{:.0f} %", 100 * *gpu.busy)) : Faint("?")});
  }
  return table;
}

// What the settings would allow, where the current load leaves enough room.
std::string WorstCase(const MemoryCase& memory) {
  const bool calm = memory.demand && memory.demand->verdict == Retention::kComfortable;
  if (!calm || !memory.capacity || !memory.workload.max_sequences) return {};
  const double tokens = static_cast<double>(memory.capacity->tokens);
  if (memory.demand->worst_tokens <= tokens) return {};
  return fmt::format(
      "{}: the settings allow {} sequences at once, which would need {} tokens of KV cache; the "
      "capacity is {}. The current load leaves enough.",
      memory.who, *memory.workload.max_sequences, Thousands(memory.demand->worst_tokens),
      Thousands(tokens));
}

void AddUnique(std::vector<std::string>& list, std::string text) {
  if (std::ranges::find(list, text) == list.end()) list.push_back(std::move(text));
}

}  // namespace

Section MemorySection(const CaseFile& seen, const std::vector<MemoryCase>& cases) {
  Section section;
  section.part = Part::kMemory;
  for (const MemoryCase& memory : cases) {
    if (memory.budget) {
      AddUnique(section.lines, fmt::format("{}: {}.", memory.who, memory.budget->formula));
      for (const Assumption& assumption : memory.budget->assumptions) {
        AddUnique(section.lines, fmt::format("Assumed: {}.", assumption.words));
      }
    }
    for (const std::string& ground : memory.grounds) AddUnique(section.lines, ground + ".");
    if (std::string worst = WorstCase(memory); !worst.empty()) {
      AddUnique(section.lines, std::move(worst));
    }
    for (const std::string& missing : memory.missing) AddUnique(section.missing, missing);
  }
  for (Table table : {BudgetTable(cases), ChangeTable(cases), GpuTable(seen.gpus)}) {
    if (!table.rows.empty()) section.tables.push_back(std::move(table));
  }
  if (Plot plot = MemoryPlot(cases); !plot.categories.empty()) {
    section.plots.push_back(std::move(plot));
  }
  if (seen.kube) {
    for (const std::string& line : seen.kube->lines) AddUnique(section.lines, line);
  }
  if (cases.empty()) {
    section.missing.emplace_back(
        "the engines' caches (--worker URL, or --model-config config.json --gpu NAME)");
  }
  if (seen.gpus.empty())
    section.missing.emplace_back("GPU memory in use (--nvidia-smi FILE, --dcgm URL)");
  return section;
}

}  // namespace fathom
