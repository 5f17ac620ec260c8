#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "diagnose/doctor/cells.h"
#include "diagnose/doctor/sections.h"
#include "diagnose/manifest/engine_settings.h"
#include "diagnose/sizing/kv_budget.h"

namespace fathom {
namespace {

Table SizeTable(const std::vector<SizeSighting>& sizes) {
  Table table;
  table.title = "Block sizes, from all sources";
  table.columns = {"side", "name", "tokens", "from", "where"};
  std::set<uint32_t> distinct;
  for (const SizeSighting& sighting : sizes) {
    if (!sighting.harmless && !sighting.mixed) distinct.insert(sighting.size);
  }
  for (const SizeSighting& sighting : sizes) {
    const bool router = sighting.side == SizeSighting::Side::kRouter;
    const Tone tone = sighting.harmless                        ? Tone::kFaint
                      : sighting.mixed || distinct.size() <= 1 ? Tone::kGood
                                                               : Tone::kBad;
    table.rows.push_back({Plain(router ? "router" : "engine"),
                          Plain(sighting.who),
                          {std::to_string(sighting.size), tone},
                          Plain(sighting.how),
                          Faint(sighting.where)});
  }
  return table;
}

std::string ParallelismText(const EngineSettings& settings) {
  return fmt::format("{}/{}/{}", settings.tensor_parallel, settings.pipeline_parallel,
                     settings.data_parallel);
}

Cell OnOff(std::optional<bool> value) {
  if (!value) return Faint("?");
  return *value ? Cell{"on", Tone::kGood} : Cell{"off", Tone::kBad};
}

template <class T>
Cell ShownSetting(const Setting<T>& setting) {
  if (!setting.value) return Faint("?");
  std::string text = fmt::format("{}", *setting.value);
  return setting.written ? Plain(std::move(text)) : Faint(text + " (default)");
}

Cell SettingCell(const Setting<std::string>& setting) {
  return setting.value ? Plain(*setting.value) : Faint("not set");
}

Cell EventsOf(const Program& program, const EngineSettings& settings) {
  if (program.engine == EngineKind::kTrtllm && settings.event_buffer.value) {
    const bool on = *settings.event_buffer.value > 0;
    return {on ? "polled" : "off", on ? Tone::kGood : Tone::kBad};
  }
  return OnOff(settings.publisher.enabled.value);
}

Table EngineTable(const Deployment& deployment) {
  Table table;
  table.title = "Engines in the files";
  table.columns = {"engine", "is",     "model",     "prefix caching", "KV events",
                   "replay", "memory", "sequences", "TP/PP/DP"};
  for (const Program& program : deployment.programs) {
    if (program.role != ProgramRole::kEngine) continue;
    const EngineSettings settings = EngineSettingsOf(program);
    const bool polled = program.engine == EngineKind::kTrtllm;
    table.rows.push_back({Plain(program.name), Plain(std::string(Name(program.engine))),
                          settings.model.empty() ? Faint("?") : Plain(settings.model),
                          OnOff(settings.prefix_caching.value), EventsOf(program, settings),
                          polled ? Faint("-")
                          : settings.publisher.replay_endpoint.value
                              ? Cell{*settings.publisher.replay_endpoint.value, Tone::kGood}
                              : Cell{"none", Tone::kDoubtful},
                          ShownSetting(settings.memory_fraction),
                          ShownSetting(settings.max_sequences), Plain(ParallelismText(settings))});
  }
  return table;
}

Cell Reported(uint64_t number) {
  return number == 0 ? Faint("?") : Plain(fmt::format("{}", number));
}

std::string_view HowPublished(PublishedEvents::How how) {
  switch (how) {
    case PublishedEvents::How::kStream:
      return "streamed";
    case PublishedEvents::How::kGuessed:
      return "not said";
    case PublishedEvents::How::kPolled:
      return "polled";
    case PublishedEvents::How::kOff:
      return "off";
    case PublishedEvents::How::kUnknown:
      break;
  }
  return "?";
}

Table WorkerTable(const LiveView& live) {
  Table table;
  table.title = "Engines that answered";
  table.columns = {"worker", "is", "prefix caching", "KV events", "cache tokens", "sequences"};
  for (const LookedAtWorker& worker : live.workers) {
    const WorkerLook& look = worker.look;
    if (!look.reached) continue;
    const bool off = look.events.how == PublishedEvents::How::kOff;
    table.rows.push_back(
        {Plain(look.url),
         Plain(fmt::format("{}{}{}", Name(look.report.engine), look.version.empty() ? "" : " ",
                           look.version)),
         OnOff(look.report.prefix_caching),
         {std::string(HowPublished(look.events.how)), off ? Tone::kBad : Tone::kPlain},
         Reported(look.report.kv_tokens),
         Reported(look.report.max_running)});
  }
  return table;
}

std::string_view RoleName(ProgramRole role) {
  switch (role) {
    case ProgramRole::kFathom:
      return "Fathom";
    case ProgramRole::kDynamoFrontend:
      return "Dynamo frontend";
    case ProgramRole::kDynamoRouter:
      return "Dynamo router";
    case ProgramRole::kEngine:
    case ProgramRole::kOther:
      break;
  }
  return "";
}

Table RouterTable(const Deployment& deployment) {
  Table table;
  table.title = "Routers in the files";
  table.columns = {"router",        "is",          "mode",
                   "KV events",     "block size",  "index TTL",
                   "max tree size", "prune ratio", "poll interval"};
  for (const Program& program : deployment.programs) {
    if (RoleName(program.role).empty()) continue;
    const RouterSettings settings = RouterSettingsOf(program);
    table.rows.push_back(
        {Plain(program.name), Plain(std::string(RoleName(program.role))),
         ShownSetting(settings.mode), OnOff(settings.kv_events.value),
         settings.block_size.value ? ShownSetting(settings.block_size) : Faint("asks the engines"),
         SettingCell(settings.ttl), SettingCell(settings.max_tree_size),
         SettingCell(settings.prune_ratio), SettingCell(settings.poll_interval)});
  }
  return table;
}

std::string ModelLine(const ModelShape& model) {
  std::string text =
      fmt::format("Model {}: {} layers", model.architecture.empty() ? "?" : model.architecture,
                  model.layers.size());
  if (model.latent) {
    text +=
        fmt::format(", latent attention of {} + {}", model.latent->rank, model.latent->rope_dim);
  } else {
    text += fmt::format(", {} KV heads of {}", model.kv_heads, model.head_dim);
  }
  if (const uint64_t weights = model.WeightBytes(); weights > 0) {
    text += fmt::format(", {} of weights{}", BytesText(weights),
                        model.weight_bytes ? "" : " (estimated)");
  }
  return text + ".";
}

}  // namespace

Section ConfigurationSection(const CaseFile& seen, const std::vector<SizeSighting>& sizes) {
  Section section;
  section.part = Part::kConfiguration;
  if (seen.model) section.lines.push_back(ModelLine(*seen.model));
  for (Table table : {SizeTable(sizes), RouterTable(seen.deployment), EngineTable(seen.deployment),
                      WorkerTable(seen.live)}) {
    if (!table.rows.empty()) section.tables.push_back(std::move(table));
  }
  if (seen.kube) {
    for (const std::string& missing : seen.kube->missing) section.missing.push_back(missing);
  }
  if (seen.files.empty()) {
    section.missing.emplace_back("deployment files (--manifest FILE, or --kube)");
  }
  if (!seen.live.router && !seen.live.dynamo) {
    section.missing.emplace_back("a running router (--url, or --dynamo-url)");
  }
  if (seen.live.workers.empty()) {
    section.missing.emplace_back("the engines' own reports (--worker URL)");
  }
  return section;
}

}  // namespace fathom
