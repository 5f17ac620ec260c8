// What do these files deploy?
//
// Kubernetes YAML (workloads, DynamoGraphDeployment, Services, ConfigMaps with engine files), the
// output of `kubectl get -o yaml` or `-o json`, Helm values, compose files, TOML, engine files by
// themselves, shell scripts and command lines, and the fenced blocks of Markdown. Files are read
// together: a ConfigMap in one is mounted by a Deployment in another.
//
// Memory  At most kMaxFileBytes per file and a bounded tree of it; anchors are never expanded
// beyond
//         that bound.
// Errors  Per file, kCaller: "x.yaml:12:3: bad YAML: ...". The other files are read all the same.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "diagnose/manifest/program.h"
#include "diagnose/manifest/source_file.h"

namespace fathom {

constexpr size_t kMaxManifestBytes = size_t{16} << 20;

// A file that could not be read as what it is.
struct UnreadFile {
  std::string name;
  std::string problem;
};

struct ReadDeployment {
  Deployment deployment;
  std::vector<UnreadFile> unread;
};

ReadDeployment ReadDeploymentFiles(std::span<const SourceFile> files);

}  // namespace fathom
