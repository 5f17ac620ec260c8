#include "diagnose/lint/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "codec/url.h"

namespace fathom {
namespace {

bool IsRouter(const Program& program) {
  return program.role == ProgramRole::kFathom || program.role == ProgramRole::kDynamoFrontend ||
         program.role == ProgramRole::kDynamoRouter;
}

// The host of a worker's URL, in any form that names one: dns+http://host:port. The Service of
// k8s://namespace/service:port has this name too.
std::string HostOf(std::string_view url) {
  constexpr std::string_view kSlices = "k8s://";
  if (url.starts_with(kSlices)) {
    const auto parts = SplitAny(url.substr(kSlices.size()), "/:");
    return parts.size() < 2 ? std::string() : fmt::format("{}.{}", parts[1], parts[0]);
  }
  if (url.starts_with("dns+")) url.remove_prefix(4);
  const auto parsed = Url::Parse(url);
  return parsed ? parsed->host : std::string();
}

bool Same(std::string_view a, std::string_view b) { return a.empty() || b.empty() || a == b; }

// Whether a router that is told of no engine finds this one: Dynamo's look for Dynamo's workers.
bool Finds(const Program& router, const Program& engine) {
  return !router.graph.empty() && router.graph == engine.graph &&
         Same(router.network_namespace, engine.network_namespace) &&
         engine.dynamo == (router.role != ProgramRole::kFathom);
}

}  // namespace

bool PlannedRouter::by_cache() const {
  const auto& mode = settings.mode.value;
  switch (program->role) {
    case ProgramRole::kDynamoRouter:
      return true;
    case ProgramRole::kFathom:
      return !mode || *mode == "kv";
    default:
      return mode && *mode == "kv";
  }
}

bool PlannedRouter::by_events() const { return by_cache() && settings.kv_events.value != false; }

Plan::Plan(const Deployment& deployment, std::span<const SourceFile> files)
    : deployment_(deployment), files_(files) {
  for (const Program& program : deployment.programs) {
    if (program.role == ProgramRole::kEngine) {
      engines_.push_back({&program, EngineSettingsOf(program)});
    } else if (IsRouter(program)) {
      routers_.push_back({&program, RouterSettingsOf(program), {}});
    }
  }
  for (PlannedRouter& router : routers_) Connect(router);
}

void Plan::Connect(PlannedRouter& router) {
  std::set<size_t> reached;
  for (const Written& url : router.settings.workers) {
    const NamedService* service = ServiceOf(url, *router.program);
    if (service == nullptr) continue;
    const std::vector<size_t> engines = EnginesOf(*service);
    reached.insert(engines.begin(), engines.end());
  }
  const bool told = !reached.empty();
  for (size_t i = 0; i < engines_.size() && !told; ++i) {
    if (Finds(*router.program, *engines_[i].program)) reached.insert(i);
  }
  router.engines.assign(reached.begin(), reached.end());
  if (!router.by_events()) return;
  for (const size_t i : reached) engines_[i].routed_by_cache = true;
}

const SourceFile* Plan::File(std::string_view name) const {
  const auto found = std::ranges::find(files_, name, &SourceFile::name);
  return found == files_.end() ? nullptr : &*found;
}

const NamedService* Plan::ServiceOf(const Written& url, const Program& router) const {
  const std::string host = HostOf(url.value);
  const auto labels = SplitAny(host, ".");
  if (labels.empty()) return nullptr;
  const std::string_view space = labels.size() > 1 ? labels[1] : router.network_namespace;
  const NamedService* found = nullptr;
  for (const NamedService& service : deployment_.services) {
    if (service.name != labels[0] || !Same(service.network_namespace, space)) continue;
    if (service.place.file == router.place.file) return &service;
    if (found == nullptr) found = &service;
  }
  return found;
}

std::vector<size_t> Plan::EnginesOf(const NamedService& service) const {
  std::vector<size_t> near;
  std::vector<size_t> far;
  for (size_t i = 0; i < engines_.size(); ++i) {
    const Program& engine = *engines_[i].program;
    if (!Selects(service, engine)) continue;
    (engine.place.file == service.place.file ? near : far).push_back(i);
  }
  return near.empty() ? far : near;
}

bool AllowsMixedSizes(const Program& router) {
  for (const Written* written :
       {router.Flag("--block-size-conflict"), router.Variable("FATHOM_BLOCK_SIZE_CONFLICT"),
        router.Key("block-size-conflict"), router.Key("block_size_conflict")}) {
    if (written != nullptr && written->value == "mixed") return true;
  }
  return false;
}

bool Selects(const NamedService& service, const Program& program) {
  if (service.selector.empty() || !Same(service.network_namespace, program.network_namespace)) {
    return false;
  }
  return std::ranges::all_of(service.selector, [&](const auto& wanted) {
    const auto label = program.labels.find(wanted.first);
    return label != program.labels.end() && label->second == wanted.second;
  });
}

bool AtLeast(std::string_view version, std::span<const unsigned> wanted) {
  if (version.starts_with('v')) version.remove_prefix(1);
  const auto parts = SplitAny(version, ".-+_");
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto part = i < parts.size() ? ParseDecimal(parts[i]) : std::nullopt;
    if (!part) return i > 0 && wanted[i] == 0;
    if (*part != wanted[i]) return *part > wanted[i];
  }
  return true;
}

}  // namespace fathom
