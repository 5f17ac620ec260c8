#include "router/gateway/source_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/wall_time.h"
#include "metrics/catalogue.h"

namespace fathom {
namespace {

std::vector<Muster::SourceState> StatesOf(const WorkerSources* sources) {
  return sources == nullptr ? std::vector<Muster::SourceState>() : sources->States();
}

void AddSource(Exposition& out, const std::string& source, bool up, size_t workers) {
  out.Add(Metric("fathom_source_up"), {{"source", source}}, up ? 1 : 0);
  out.Add(Metric("fathom_source_workers"), {{"source", source}}, static_cast<double>(workers));
}

std::string KindOf(const std::string& name) { return name.substr(0, name.find("://")); }

}  // namespace

size_t StaleSources(const WorkerSources* sources) {
  const auto states = StatesOf(sources);
  return static_cast<size_t>(std::ranges::count(states, false, &Muster::SourceState::ok));
}

void WriteSources(JsonWriter& w, const WorkerSources* sources) {
  const auto text = [&](std::string_view key, std::string_view value) {
    w.Key(key);
    value.empty() ? w.Null() : w.String(value);
  };
  w.Key("sources").BeginArray();
  for (const Muster::SourceState& state : StatesOf(sources)) {
    w.BeginObject().Key("source").String(state.name);
    w.Key("status").String(state.ok ? "ok" : "stale");
    w.Key("since").String(WallTime(state.since));
    text("error", state.asked ? state.error : "it has not answered yet");
    w.Key("workers").Unsigned(state.workers);
    w.Key("not_added").Unsigned(state.not_added);
    w.Key("taken_out").BeginArray();
    for (const WorkerId id : state.taken_out) w.Unsigned(id.value());
    w.EndArray();
    text("unknown", state.unknown);
    w.EndObject();
  }
  w.EndArray();
}

void CollectSources(const WorkerSources* sources, bool with_names, Exposition& out) {
  constexpr size_t kMost = 256;  // series; further sources are one of them
  std::map<std::string, size_t> turns;
  size_t series = 0;
  size_t others = 0;
  size_t workers = 0;
  bool up = true;
  for (const Muster::SourceState& state : StatesOf(sources)) {
    const std::string kind = KindOf(state.name);
    const size_t turn = ++turns[kind];
    if (++series < kMost) {
      AddSource(out, with_names ? state.name : fmt::format("{}-{}", kind, turn), state.ok,
                state.workers);
      continue;
    }
    ++others;
    up = up && state.ok;
    workers += state.workers;
  }
  if (others > 0) AddSource(out, "other", up, workers);
}

}  // namespace fathom
