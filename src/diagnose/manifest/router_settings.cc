#include <algorithm>

#include "base/text.h"
#include "diagnose/manifest/engine_settings.h"
#include "diagnose/manifest/setting_lookup.h"

namespace fathom {
namespace {

Setting<uint32_t> BlockSizeOf(const Program& program) {
  if (program.role == ProgramRole::kDynamoRouter) {
    return Narrowed<uint32_t>(
        CountOf(program, {"--router-block-size", "--block-size", "DYN_ROUTER_BLOCK_SIZE"}, 128));
  }
  const bool fathom = program.role == ProgramRole::kFathom;
  auto size = Narrowed<uint32_t>(CountOf(program,
                                         {"--kv-cache-block-size", "FATHOM_KV_CACHE_BLOCK_SIZE",
                                          "DYN_KV_CACHE_BLOCK_SIZE", "kv-cache-block-size"},
                                         fathom ? std::nullopt : std::optional<uint64_t>(16)));
  // Fathom finds it out.
  if (fathom && size.value == 0) size.value.reset();
  return size;
}

std::optional<std::string> DefaultMode(const Program& program) {
  switch (program.role) {
    case ProgramRole::kFathom:
    case ProgramRole::kDynamoRouter:
      return "kv";
    case ProgramRole::kDynamoFrontend:
      return "round-robin";
    case ProgramRole::kEngine:
    case ProgramRole::kOther:
      break;
  }
  return std::nullopt;
}

Setting<bool> KvEventsOf(const Program& program) {
  const Written* off =
      FirstWritten(program, {"--no-router-kv-events", "--no-kv-events", "--no-use-kv-events"});
  if (off != nullptr) return {!AsSwitch(off->value).value_or(true), *off};
  const Written* on = FirstWritten(
      program, {"--router-kv-events", "--kv-events", "--use-kv-events", "FATHOM_ROUTER_KV_EVENTS",
                "FATHOM_KV_EVENTS", "DYN_ROUTER_USE_KV_EVENTS", "DYN_USE_KV_EVENTS",
                "DYN_KV_EVENTS", "router-kv-events", "kv-events"});
  if (on == nullptr) return {true, std::nullopt};
  return {AsSwitch(on->value), *on};
}

void ReadIndexSettings(const Program& program, RouterSettings& out) {
  out.ttl =
      TextOf(program, {"--router-ttl-secs", "--router-ttl", "FATHOM_ROUTER_TTL",
                       "DYN_ROUTER_TTL_SECS", "DYN_ROUTER_TTL", "router-ttl-secs", "router-ttl"});
  out.max_tree_size =
      TextOf(program, {"--router-max-tree-size", "--index-max-bytes", "FATHOM_INDEX_MAX_BYTES",
                       "DYN_ROUTER_MAX_TREE_SIZE", "router-max-tree-size", "index-max-bytes"});
  out.prune_ratio = TextOf(program, {"--router-prune-target-ratio", "DYN_ROUTER_PRUNE_TARGET_RATIO",
                                     "router-prune-target-ratio"});
  out.poll_interval = TextOf(
      program,
      {"--kv-events-poll-interval", "FATHOM_KV_EVENTS_POLL_INTERVAL", "kv-events-poll-interval"});
}

// "http://a,http://b" and "http://a http://b" are two workers.
void AddWorkers(const Written& written, std::vector<Written>& workers) {
  for (const std::string_view url : SplitUrls(written.value)) {
    Written worker = written;
    worker.value = url;
    if (worker.value != written.value) worker.span.reset();
    workers.push_back(std::move(worker));
  }
}

std::vector<Written> WorkersOf(const Program& program) {
  std::vector<Written> workers;
  for (const Written& flag : program.flags) {
    if (flag.name == "--worker-urls") AddWorkers(flag, workers);
  }
  for (const Written& variable : program.variables) {
    if (variable.name == "FATHOM_WORKER_URLS") AddWorkers(variable, workers);
  }
  for (const Written& key : program.keys) {
    if (key.name == "workers" || key.name == "workers.url" || key.name == "worker-urls") {
      AddWorkers(key, workers);
    }
  }
  return workers;
}

}  // namespace

RouterSettings RouterSettingsOf(const Program& program) {
  RouterSettings out;
  out.block_size = BlockSizeOf(program);
  out.mode =
      TextOf(program, {"--router-mode", "FATHOM_ROUTER_MODE", "DYN_ROUTER_MODE", "router-mode"},
             DefaultMode(program));
  out.kv_events = KvEventsOf(program);
  ReadIndexSettings(program, out);
  out.workers = WorkersOf(program);
  return out;
}

}  // namespace fathom
