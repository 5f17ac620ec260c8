// Everything that the files of one deployment hold, before it is put together.
//
// A program's settings may stand in another file: a ConfigMap that it mounts, an engine file that
// it names. So all files are read first, and Assemble() looks up what they say of each other.
#pragma once

#include <deque>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/manifest/container.h"
#include "diagnose/manifest/engine_file.h"
#include "diagnose/manifest/program.h"
#include "diagnose/manifest/yaml_tree.h"

namespace fathom {

struct ConfigMap {
  std::string name;
  std::string network_namespace;
  const YamlNode* data = nullptr;
};

// An engine file by itself, which may belong to a program of another file. Role kOther: it is one
// only if a program names it.
struct LooseFile {
  std::string name;
  Identity identity;
  EngineFile file;
  FilePlace place;
  std::string graph;
};

// An object that sets how many pods another one has.
struct Autoscaler {
  std::string kind;  // of the other
  std::string name;
  std::string network_namespace;
  uint32_t least = 1;
  uint32_t most = 1;
};

struct Collection {
  std::vector<Draft> drafts;
  std::vector<NamedService> services;
  std::vector<ConfigMap> config_maps;
  std::vector<LooseFile> loose_files;
  std::vector<Autoscaler> autoscalers;
  std::set<std::pair<std::string, std::string>> kinds;  // of objects, with their namespaces
  std::deque<YamlTree> trees;                           // that all of them point into

  void Add(std::vector<Draft> more);
};

// The programs with the engine files and variables that they take from elsewhere. Loose files that
// no program names are programs by themselves. What a controller has made of an object that is here
// as well says nothing new, and is left out.
Deployment Assemble(Collection collection);

}  // namespace fathom
