// What would this deployment start, and with which settings?
//
// A Program is one process of a manifest, whatever the manifest's language: a container of a
// Deployment, a service of a DynamoGraphDeployment or a compose file, a command line.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/manifest/written.h"
#include "engine/engine_kind.h"

namespace fathom {

enum class ProgramRole : uint8_t {
  kOther,
  kEngine,          // vllm serve, sglang, trtllm-serve, and Dynamo's workers of these
  kFathom,          // fathom serve
  kDynamoFrontend,  // python -m dynamo.frontend, or componentType: frontend
  kDynamoRouter,    // python -m dynamo.router: has a block size of its own
};

// Prefill and decode may be done by different workers: prompts are found cached by the former, and
// what the latter hold is nobody's to route by.
enum class Duty : uint8_t { kBoth, kPrefill, kDecode };

struct ContainerPort {
  std::string name;
  uint16_t port = 0;
  FilePlace place;
};

// Where a new variable, flag or key can be written; edit.h uses it, nobody else looks inside.
struct Foothold {
  enum class Form : uint8_t {
    kNone,
    kYamlEnvList,    // - name: X\n  value: "y"
    kYamlEnvMap,     // X: "y"
    kYamlEnvPairs,   // - X=y
    kYamlItems,      // args: - --x\n - y
    kYamlFlowItems,  // args: ["--x", "y"]
    kText,           // a command line as it stands
    kYamlKeys,       // key: value of an engine's own file
    kTomlKeys,
  };
  Form form = Form::kNone;
  std::string file;      // whose text it is in
  size_t offset = 0;     // where the new text goes
  size_t indent = 0;     // of its lines
  bool missing = false;  // the list itself must be made, too (envs:, args:)
  std::string key;       // its name then
  bool nested = false;   // inside quotes: only text that needs none
};

struct Program {
  ProgramRole role = ProgramRole::kOther;
  EngineKind engine = EngineKind::kUnknown;
  Duty duty = Duty::kBoth;
  bool dynamo = false;  // it runs inside Dynamo
  std::string name;     // "Deployment ml/vllm, container engine"; "Frontend"
  std::string graph;    // programs of one graph work together: a DynamoGraphDeployment, a file
  std::string image;    // as written, may be empty
  std::string version;  // of the image's tag or the like where it reads as one: "0.9.0"
  FilePlace place;
  uint32_t replicas = 1;
  uint32_t most_replicas = 1;  // that an autoscaler may make of them; not below replicas
  bool per_node = false;       // of a DaemonSet, or a global service: one on each node
  std::map<std::string, std::string> labels;  // of the pod
  std::string network_namespace;              // Kubernetes namespace; empty: not said

  std::vector<Written> flags;      // in order; value empty for a bare switch
  std::vector<Written> variables;  // environment
  std::vector<Written> keys;  // of engine files that it reads: "kv_cache_config.tokens_per_block"
  std::vector<ContainerPort> ports;
  bool host_network = false;
  // Which nodes its pod may be on: selector and affinity, as one text. Nothing: it is in no pod.
  std::optional<std::string> nodes;
  bool unseen_file = false;  // it reads an engine file that is not among the sources

  Foothold environment_foothold;
  Foothold flag_foothold;
  Foothold key_foothold;

  // The last one of that name; nullptr if there is none. Flags are compared with - and _ alike.
  const Written* Flag(std::string_view name) const;
  const Written* Variable(std::string_view name) const;
  const Written* Key(std::string_view dotted) const;
};

// A Kubernetes Service, or a service of a compose file.
struct NamedService {
  std::string name;
  std::string network_namespace;
  bool headless = false;  // its name stands for all addresses; so it does in compose
  bool compose = false;
  std::map<std::string, std::string> selector;
  FilePlace place;
};

struct Deployment {
  std::vector<Program> programs;
  std::vector<NamedService> services;
};

}  // namespace fathom
