// Which programs does a container start, and with which settings?
//
// Containers look alike in Kubernetes, Dynamo's graphs, Helm values and compose files; what differs
// is where their parts stand. Whoever reads one of these languages finds the parts, and this makes
// programs of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "diagnose/manifest/command_line.h"
#include "diagnose/manifest/identity.h"
#include "diagnose/manifest/program.h"
#include "diagnose/manifest/yaml_tree.h"

namespace fathom {

// What is behind these is left out, so that a file of repetitions stays small.
constexpr size_t kMaxPrograms = 4096;
constexpr size_t kMaxVariables = 1000;  // of one list, map or script
constexpr size_t kMaxMounts = 100;
constexpr size_t kMaxDocuments = 100;

// A file of a ConfigMap in a container; key empty: all of its files, each by its name.
struct Mount {
  std::string path;
  std::string config_map;
  std::string key;
};

// A program whose engine files have not been looked up yet.
struct Draft {
  Program program;
  std::vector<Mount> mounts;
  std::vector<std::string> environment_maps;  // ConfigMaps whose entries are variables
  std::vector<HereDocument> documents;        // that its script writes
  std::string maker;                          // kind of the object that has made its own; or empty
  std::string owner_kind;                     // of the object that it stands in: "Deployment"
  std::string owner_name;
};

struct ContainerParts {
  const YamlNode* home = nullptr;  // the map that has the container's keys
  std::string image;
  const YamlNode* command = nullptr;  // instead of the image's own
  const YamlNode* arguments = nullptr;
  std::vector<const YamlNode*> environments;   // the last one is where a variable is added
  const YamlNode* environment_home = nullptr;  // where a list is made if there is none
  std::string_view environment_key = "env";
  std::string_view arguments_key = "args";  // empty: none can be added
  Foothold::Form missing_environment = Foothold::Form::kYamlEnvList;
  Identity otherwise;  // what it is where neither command nor image says
};

// `base` has what the language says of the program: its name, graph, place and the like.
std::vector<Draft> DraftsOf(const ContainerParts& parts, const Draft& base);

// Of a shell text, one for each program that it starts.
std::vector<Draft> DraftsOf(const ShellText& shell, const Passage& passage, const Draft& base);

// A list of names and values, a list of NAME=value, or a map.
std::vector<Written> VariablesOf(const YamlNode& environment);

}  // namespace fathom
