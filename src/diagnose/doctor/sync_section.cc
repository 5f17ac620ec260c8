#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "diagnose/doctor/cells.h"
#include "diagnose/doctor/memory_diagnosis.h"
#include "diagnose/doctor/sections.h"

namespace fathom {
namespace {

Cell Count(uint64_t n, Tone tone = Tone::kPlain) {
  return {Thousands(static_cast<double>(n)), n == 0 ? Tone::kFaint : tone};
}

Tone TrustTone(std::string_view trust) {
  if (trust == "trusted") return Tone::kGood;
  if (trust == "doubted" || trust == "excluded") return Tone::kBad;
  return Tone::kDoubtful;
}

Table TrustTable(const RouterLook& router) {
  Table table;
  table.title = "The router's trust in each rank";
  table.columns = {"worker", "rank", "trust", "cause", "blocks", "last event"};
  for (const RoutedWorker& worker : router.workers) {
    for (const RoutedRank& rank : worker.ranks) {
      table.rows.push_back({Plain(worker.url),
                            Plain(std::to_string(rank.rank)),
                            {rank.trust, TrustTone(rank.trust)},
                            Plain(rank.cause),
                            Count(rank.blocks),
                            rank.last_event_age
                                ? Plain(fmt::format("{:.1f} s ago", *rank.last_event_age))
                                : Faint("never")});
    }
  }
  return table;
}

// Empty if every prompt of every model is read.
Table PromptTable(const RouterLook& router) {
  Table table;
  table.title = "Models whose prompts are not read by their tokens";
  table.columns = {"model", "status", "cause", "share", "reason", "route", "engine"};
  for (const RoutedModel& model : router.models) {
    if (model.cause.empty()) continue;
    table.rows.push_back({Plain(model.model),
                          {model.status, model.status == "ok" ? Tone::kDoubtful : Tone::kBad},
                          Plain(model.cause),
                          Plain(fmt::format("{:.0f} %", 100 * model.share)),
                          Plain(model.reason),
                          Plain(model.route),
                          Plain(model.engine)});
  }
  return table;
}

void AddPrompts(const RouterLook& router, Section& section) {
  Table table = PromptTable(router);
  if (!table.rows.empty()) section.tables.push_back(std::move(table));
  for (const RoutedModel& model : router.models) {
    if (model.cause != "prompts_by_text") continue;
    section.lines.push_back(
        fmt::format("Note: {:.0f} % of the last prompts of model {} were routed by their text, not "
                    "by their tokens{}{}.",
                    100 * model.share, model.model, model.fix.empty() ? "" : ": ", model.fix));
  }
}

Table StreamTable(const LiveView& live) {
  Table table;
  table.title = "KV events received";
  table.columns = {"worker", "rank", "batches/s", "stored/s",       "removed/s",
                   "gaps",   "lag",  "sizes",     "unknown parents"};
  for (const LookedAtWorker& worker : live.workers) {
    for (const StreamLook& stream : worker.streams) {
      const double seconds = stream.seconds > 0 ? stream.seconds : 1;
      table.rows.push_back(
          {Plain(worker.look.url), Plain(std::to_string(stream.source.rank)),
           stream.connected
               ? Plain(fmt::format("{:.1f}", static_cast<double>(stream.batches) / seconds))
               : Cell{"not connected", Tone::kBad},
           Plain(fmt::format("{:.1f}", stream.StoredPerSecond())),
           Plain(fmt::format("{:.1f}", stream.RemovedPerSecond())), Count(stream.gaps, Tone::kBad),
           stream.median_lag ? Plain(fmt::format("{:.0f} ms", 1000 * *stream.median_lag))
                             : Faint("?"),
           Plain(fmt::format("{}", fmt::join(stream.block_sizes, " "))),
           // Those from before we came are no fault.
           Count(stream.parents_removed, Tone::kBad)});
    }
  }
  return table;
}

Table LogTable(const std::vector<ReadLog>& logs) {
  Table table;
  table.title = "Log lines";
  table.columns = {"log", "line", "times", "per minute", "from", "to"};
  for (const ReadLog& log : logs) {
    for (size_t i = 0; i < kLogKinds; ++i) {
      const auto kind = static_cast<LogKind>(i);
      const Tally& tally = log.facts.Of(kind);
      if (!tally) continue;
      const auto rate = tally.PerMinute();
      table.rows.push_back({Plain(log.name), Plain(std::string(Name(kind))), Count(tally.lines),
                            rate ? Plain(fmt::format("{:.0f}", *rate)) : Faint("?"),
                            tally.first ? Faint(ToText(*tally.first)) : Faint("?"),
                            tally.last ? Faint(ToText(*tally.last)) : Faint("?")});
    }
  }
  return table;
}

// What the numbers of evictions and stores say about the cache.
std::string_view EvictionComment(double removed, double stored) {
  constexpr double kFarAbove = 3;
  constexpr double kSteady = 0.5;
  if (removed > kFarAbove * stored) {
    return "evictions are far above stores, the cache is replaced faster than an index can follow";
  }
  if (removed > stored) return "evictions outnumber stores, the cache shrinks or was filled before";
  if (removed > kSteady * stored) return "the cache is full, each new block evicts an old one";
  return "evictions are below stores, the cache still fills";
}

void AddSelections(const ReadLog& log, Section& section) {
  for (const ReuseFacts* reuse : {&log.facts.selections, &log.facts.completions}) {
    if (reuse->counted == 0) continue;
    section.lines.push_back(fmt::format(
        "{}: {} requests, {} found no cached block{}{}.", log.name,
        Thousands(static_cast<double>(reuse->counted)),
        Thousands(static_cast<double>(reuse->none_cached)),
        reuse->with_tree_size == 0 ? ""
                                   : fmt::format("; the index was empty for {}",
                                                 Thousands(static_cast<double>(reuse->tree_empty))),
        reuse->max_tree_size == 0
            ? ""
            : fmt::format(" and held {} at most",
                          Thousands(static_cast<double>(reuse->max_tree_size)))));
    Plot plot;
    plot.title = "Requests by blocks found cached";
    plot.x_label = "cached blocks";
    plot.y_label = "requests";
    Plot::Series series{.name = "requests", .x = {}, .y = {}};
    size_t used = ReuseFacts::kBuckets;
    while (used > 1 && reuse->by_cached[used - 1] == 0) --used;
    for (size_t i = 0; i < used; ++i) {
      const uint64_t low = i == 0 ? 0 : uint64_t{1} << (i - 1);
      const uint64_t high = i == 0 ? 0 : (uint64_t{1} << i) - 1;
      plot.categories.push_back(i + 1 == ReuseFacts::kBuckets ? fmt::format("{}+", low)
                                : low == high                 ? std::to_string(low)
                                                              : fmt::format("{}-{}", low, high));
      series.y.push_back(static_cast<double>(reuse->by_cached[i]));
    }
    plot.series.push_back(std::move(series));
    plot.caption = fmt::format(
        "{:.0f} % of the requests in {} found nothing.",
        100.0 * static_cast<double>(reuse->none_cached) / static_cast<double>(reuse->counted),
        log.name);
    section.plots.push_back(std::move(plot));
  }
}

// Evictions against stores, as the router complained of them.
void AddWarnings(const ReadLog& log, Section& section) {
  const uint64_t removals = log.facts.Of(LogKind::kRemoveMissing).lines;
  const uint64_t stores =
      log.facts.Of(LogKind::kParentMissing).lines + log.facts.Of(LogKind::kStaleParent).lines;
  if (removals + stores == 0) return;
  section.lines.push_back(fmt::format(
      "{}: {} warnings about evictions of unknown blocks, {} about stores without a parent: {}.",
      log.name, Thousands(static_cast<double>(removals)), Thousands(static_cast<double>(stores)),
      EvictionComment(static_cast<double>(removals), static_cast<double>(stores))));
}

void AddProbe(const ProbeReport& probe, Section& section) {
  section.lines.push_back(probe.what);
  if (!probe.problem.empty()) section.missing.push_back("probe: " + probe.problem);
  if (probe.levels.empty()) return;
  Table table;
  table.title = "Probe: time to first token";
  table.columns = {"at once", "first turns", "follow-ups", "ratio", "found cached", "errors"};
  Plot plot;
  plot.kind = Plot::Kind::kLines;
  plot.title = "Time to first token: first turns and follow-ups";
  plot.x_label = "conversations at once";
  plot.y_label = "ms";
  plot.series = {{.name = "first turns", .x = {}, .y = {}, .tone = Tone::kDoubtful},
                 {.name = "follow-ups", .x = {}, .y = {}, .tone = Tone::kGood}};
  for (const ProbeLevel& level : probe.levels) {
    const double first = Milliseconds(level.first_turns.median);
    const double later = Milliseconds(level.follow_ups.median);
    const uint64_t prompt = level.follow_ups.prompt_tokens;
    table.rows.push_back(
        {Plain(std::to_string(level.at_once)),
         Plain(fmt::format("{:.0f} ms", first)),
         Plain(fmt::format("{:.0f} ms", later)),
         {fmt::format("{:.2f}", level.Ratio()), level.Ratio() < 0.7 ? Tone::kGood : Tone::kBad},
         level.follow_ups.told > 0 && prompt > 0
             ? Plain(fmt::format("{:.0f} %",
                                 100.0 * static_cast<double>(level.follow_ups.cached_tokens) /
                                     static_cast<double>(prompt)))
             : Faint("not reported"),
         Count(level.errors, Tone::kBad)});
    for (size_t i = 0; i < 2; ++i) {
      plot.series[i].x.push_back(static_cast<double>(level.at_once));
      plot.series[i].y.push_back(i == 0 ? first : later);
    }
  }
  plot.caption = fmt::format("Without load, a follow-up takes {:.0f} % of a first turn's time.",
                             100 * probe.levels.front().Ratio());
  section.tables.push_back(std::move(table));
  section.plots.push_back(std::move(plot));
}

void AddStreams(const LiveView& live, Section& section) {
  Table table = StreamTable(live);
  if (table.rows.empty()) return;
  Plot plot;
  plot.title = "Blocks stored and removed per second";
  plot.y_label = "blocks/s";
  plot.series = {{.name = "stored", .x = {}, .y = {}, .tone = Tone::kGood},
                 {.name = "removed", .x = {}, .y = {}, .tone = Tone::kDoubtful}};
  double stored = 0;
  double removed = 0;
  for (const LookedAtWorker& worker : live.workers) {
    for (const StreamLook& stream : worker.streams) {
      plot.categories.push_back(fmt::format("{} {}", worker.look.url, stream.source.rank));
      plot.series[0].y.push_back(stream.StoredPerSecond());
      plot.series[1].y.push_back(stream.RemovedPerSecond());
      stored += stream.StoredPerSecond();
      removed += stream.RemovedPerSecond();
    }
  }
  plot.caption =
      fmt::format("In total {:.1f} stored and {:.1f} removed per second: {}.", stored, removed,
                  stored + removed > 0 ? EvictionComment(removed, stored)
                                       : std::string_view("no block was stored"));
  section.tables.push_back(std::move(table));
  section.plots.push_back(std::move(plot));
}

void AddEngineTimes(const LiveView& live, Section& section) {
  for (const LookedAtWorker& worker : live.workers) {
    if (!worker.unheard.empty()) {
      section.missing.push_back(
          fmt::format("KV events of {}: {}", worker.look.url, worker.unheard));
    }
    for (const std::string& unseen : worker.look.unseen) {
      section.missing.push_back(fmt::format("{}: {}", worker.look.url, unseen));
    }
    const auto hits = worker.look.counts.HitRate();
    if (hits) {
      section.lines.push_back(
          fmt::format("{} has found {:.0f} % of its prompt tokens in its cache.", worker.look.url,
                      100 * *hits));
    }
    if (worker.tokens && worker.tokens->Compared()) {
      section.lines.push_back(
          fmt::format("{}: the tokenizer of --model-path and the engine's {}.", worker.look.url,
                      worker.tokens->Differs() ? "make different tokens" : "make the same tokens"));
    }
    if (worker.tokens && !worker.tokens->problem.empty()) {
      section.missing.push_back(
          fmt::format("tokens of {}: {}", worker.look.url, worker.tokens->problem));
    }
  }
}

}  // namespace

Section SyncSection(const CaseFile& seen) {
  Section section;
  section.part = Part::kSync;
  if (seen.live.router && seen.live.router->reached) {
    Table table = TrustTable(*seen.live.router);
    if (!table.rows.empty()) section.tables.push_back(std::move(table));
    AddPrompts(*seen.live.router, section);
    const RouterCounters& counters = seen.live.router->counters;
    if (counters.prompt_tokens > 0) {
      section.lines.push_back(
          fmt::format("The router found {:.0f} % of {} prompt tokens cached where it sent them.",
                      100 * counters.cached_tokens / counters.prompt_tokens,
                      Thousands(counters.prompt_tokens)));
    }
  }
  if (seen.live.router && !seen.live.router->problem.empty()) {
    section.missing.push_back(seen.live.router->url + ": " + seen.live.router->problem);
  }
  if (Table table = TransportTable(seen); !table.rows.empty()) {
    section.tables.push_back(std::move(table));
  } else {
    section.missing.emplace_back(
        "how KV events reach the router (--manifest FILE, --worker URL, or --url)");
  }
  AddStreams(seen.live, section);
  AddEngineTimes(seen.live, section);
  for (const ReadLog& log : seen.logs) {
    AddSelections(log, section);
    AddWarnings(log, section);
  }
  if (Table table = LogTable(seen.logs); !table.rows.empty()) {
    section.tables.push_back(std::move(table));
  }
  if (seen.probe) AddProbe(*seen.probe, section);
  if (seen.logs.empty()) section.missing.emplace_back("logs (--logs FILE)");
  const bool heard = std::ranges::any_of(
      seen.live.workers, [](const LookedAtWorker& worker) { return !worker.streams.empty(); });
  if (!heard) {
    section.missing.emplace_back("the KV event streams (--worker URL --listen 30s)");
  }
  if (!seen.probe) {
    section.missing.emplace_back(
        "time to first token of follow-up turns without load (--probe 4, which sends requests to "
        "the engines)");
  }
  return section;
}

}  // namespace fathom
