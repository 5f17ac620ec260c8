// Who routes to whom, by these files?
//
// A router stands before the engines that the Services of its worker URLs select, in whatever file
// they are. Without such, Dynamo's stand before Dynamo's workers of their graph and namespace, and
// Fathom before the other engines there.
//
// Memory  Points into the deployment and the files, which must outlive it.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "diagnose/manifest/engine_settings.h"
#include "diagnose/manifest/program.h"
#include "diagnose/manifest/source_file.h"

namespace fathom {

struct PlannedEngine {
  const Program* program = nullptr;
  EngineSettings settings;
  bool routed_by_cache = false;  // a router that reads KV events stands before it
};

struct PlannedRouter {
  const Program* program = nullptr;
  RouterSettings settings;
  std::vector<size_t> engines;  // of Plan::engines()

  bool by_cache() const;   // it looks at caches when it chooses
  bool by_events() const;  // and learns from KV events what they hold
};

class Plan {
 public:
  Plan(const Deployment& deployment, std::span<const SourceFile> files);

  std::span<const PlannedRouter> routers() const { return routers_; }
  std::span<const PlannedEngine> engines() const { return engines_; }
  const Deployment& deployment() const { return deployment_; }
  std::span<const SourceFile> files() const { return files_; }

  // The file of that name; nullptr if there is none.
  const SourceFile* File(std::string_view name) const;
  // The Service that a worker URL of this router names; nullptr if it is not among the files.
  // Folders of examples have the same names in many files: what is in the router's own file comes
  // first.
  const NamedService* ServiceOf(const Written& url, const Program& router) const;
  // Those that it selects, as indices of engines(); in its own file if there are any.
  std::vector<size_t> EnginesOf(const NamedService& service) const;

 private:
  void Connect(PlannedRouter& router);

  const Deployment& deployment_;
  const std::span<const SourceFile> files_;
  std::vector<PlannedRouter> routers_;
  std::vector<PlannedEngine> engines_;
};

// A Fathom that serves workers with different block sizes side by side.
bool AllowsMixedSizes(const Program& router);

bool Selects(const NamedService& service, const Program& program);

// Whether "1.5.0-rc1" is at least 1.5. False for what does not read as a version.
bool AtLeast(std::string_view version, std::span<const unsigned> wanted);

}  // namespace fathom
