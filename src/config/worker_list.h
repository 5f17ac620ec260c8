// Which workers does this YAML list name? Each is a URL, or a map with a url.
//
// yaml-cpp throws; whoever parses the document catches.
//
// Memory  At most kMost entries of kMostBytes each: an alias may repeat a large map often.
#pragma once

#include <yaml-cpp/yaml.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/origin.h"
#include "config/settings.h"

namespace fathom {

// Where a key was set, and as what: an option may have several names.
struct SeenKey {
  int line;
  std::string key;
};
using SeenKeys = std::map<std::string, SeenKey>;

// `key` with dashes or underscores alone.
std::string SpelledWith(char wanted, std::string key);
Result<> RefuseRepeatedKey(const Origin& origin, const std::string& name, int line, SeenKeys& seen);
Error BadYaml(std::string_view name, const YAML::Exception& problem);
// Fails if there is more than one document; `name` is the file's.
Result<> CheckOneDocument(std::string_view name, const std::string& yaml);

class WorkerListReader {
 public:
  static constexpr size_t kMost = 4096;
  static constexpr size_t kMostBytes = 64 << 10;

  // `name` identifies the file in messages, and outlives this.
  explicit WorkerListReader(std::string_view name) : name_(name) {}

  Result<std::vector<WorkerEntry>> Read(const YAML::Node& list) const;

  static int LineOf(const YAML::Node& node) { return node.Mark().line + 1; }
  Result<Origin> OriginOf(const YAML::Node& key) const;

 private:
  Result<> ReadWorker(const YAML::Node& item, WorkerEntry& entry) const;
  Result<> ReadField(const YAML::Node& key, const YAML::Node& value, WorkerEntry& entry,
                     SeenKeys& seen) const;
  Result<> ReadLabels(const Origin& origin, const YAML::Node& value, WorkerEntry& entry) const;

  const std::string_view name_;
};

}  // namespace fathom
