#include <fmt/format.h>

#include <string>
#include <utility>

#include "diagnose/doctor/cells.h"
#include "diagnose/doctor/sections.h"
#include "diagnose/manifest/engine_settings.h"
#include "diagnose/manifest/setting_lookup.h"

namespace fathom {
namespace {

constexpr std::string_view kPushed = "pushed over ZeroMQ";
constexpr std::string_view kPolled = "polled over HTTP";
constexpr std::string_view kPolledPage = "POST /kv_cache_events";
constexpr size_t kMaxRows = 64;

using Row = std::vector<Cell>;

Cell ReplayAt(const std::string& endpoint) {
  return endpoint.empty() ? Cell{"none", Tone::kDoubtful} : Plain(endpoint);
}

Row NotPublished(std::string who) {
  return {Plain(std::move(who)), {"none", Tone::kBad}, Faint("-"), Faint("-")};
}

Row PolledRow(std::string who) {
  return {Plain(std::move(who)), Plain(std::string(kPolled)), Plain(std::string(kPolledPage)),
          Faint("-")};
}

Row RowOf(const WorkerLook& look) {
  using How = PublishedEvents::How;
  switch (look.events.how) {
    case How::kOff:
      return NotPublished(look.url);
    case How::kPolled:
      return PolledRow(look.url);
    case How::kStream:
    case How::kGuessed:
      break;
    case How::kUnknown:
      return {Plain(look.url), Faint("?"), Faint("?"), Faint("?")};
  }
  const auto& sources = look.events.sources;
  std::string address = sources.empty() ? "" : sources.front().endpoint;
  if (sources.size() > 1) address += fmt::format(" and {} more ranks", sources.size() - 1);
  const bool assumed = look.events.how == How::kGuessed;
  return {Plain(look.url), Plain(fmt::format("{}{}", kPushed, assumed ? " (assumed)" : "")),
          Plain(std::move(address)),
          assumed ? Faint("?") : ReplayAt(sources.empty() ? "" : sources.front().replay)};
}

// From Dynamo's worker to its router, whatever the engine gives the worker.
Row DynamoRow(const Program& program) {
  const auto plane = TextOf(program, {"--event-plane", "DYN_EVENT_PLANE"});
  const Written* const nats = program.Variable("NATS_SERVER");
  const std::string how = plane.value ? fmt::format("Dynamo's event plane: {}", *plane.value)
                          : nats != nullptr
                              ? std::string("Dynamo's event plane: NATS_SERVER is set")
                              : std::string("Dynamo's event plane: not set in the files");
  return {Plain(program.name), Plain(how),
          nats != nullptr && !nats->value.empty() ? Plain(nats->value) : Faint("-"), Faint("-")};
}

Row RowOf(const Program& program) {
  const EngineSettings settings = EngineSettingsOf(program);
  const PublisherSettings& publisher = settings.publisher;
  if (program.dynamo) return DynamoRow(program);
  if (program.engine == EngineKind::kTrtllm && !publisher.whole) {
    if (!settings.event_buffer.value)
      return {Plain(program.name), Faint("?"), Faint("?"), Faint("?")};
    return *settings.event_buffer.value > 0 ? PolledRow(program.name) : NotPublished(program.name);
  }
  if (publisher.enabled.value == false) return NotPublished(program.name);
  return {Plain(program.name), Plain(std::string(kPushed)),
          publisher.endpoint.value ? Plain(*publisher.endpoint.value) : Faint("its default"),
          ReplayAt(publisher.replay_endpoint.value.value_or(""))};
}

// As a running Fathom follows them.
void AddFollowed(const RouterLook& router, Table& table) {
  for (const RoutedWorker& worker : router.workers) {
    for (const RoutedRank& rank : worker.ranks) {
      if (rank.events.empty() || table.rows.size() >= kMaxRows) continue;
      const bool polled = rank.events.starts_with("http");
      table.rows.push_back({Plain(fmt::format("{} rank {}", worker.url, rank.rank)),
                            Plain(std::string(polled ? kPolled : kPushed)), Plain(rank.events),
                            Faint("-")});
    }
  }
}

}  // namespace

Table TransportTable(const CaseFile& seen) {
  Table table;
  table.title = "How KV events reach the router";
  table.columns = {"engine", "transport", "address", "replay"};
  for (const LookedAtWorker& worker : seen.live.workers) {
    if (worker.look.reached && table.rows.size() < kMaxRows) {
      table.rows.push_back(RowOf(worker.look));
    }
  }
  if (table.rows.empty() && seen.live.router) AddFollowed(*seen.live.router, table);
  for (const Program& program : seen.deployment.programs) {
    if (program.role == ProgramRole::kEngine && table.rows.size() < kMaxRows) {
      table.rows.push_back(RowOf(program));
    }
  }
  return table;
}

}  // namespace fathom
