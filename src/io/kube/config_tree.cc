#include "io/kube/config_tree.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>

namespace fathom {
namespace {

constexpr std::string_view kMergeKey = "<<";

// The library throws; ReadConfigTree() catches.
class ConfigTreeReader {
 public:
  ConfigNode Read(const YAML::Node& node, size_t depth = 0) {
    if (++nodes_ > kMaxConfigNodes || depth > kMaxConfigDepth) {
      throw YAML::ParserException(node.Mark(), "more values than any kubeconfig has");
    }
    ConfigNode out;
    out.null = !node.IsDefined() || node.IsNull();
    if (node.IsScalar()) out.text = node.Scalar();
    if (node.IsSequence()) {
      for (const YAML::Node& item : node) out.items.push_back(Read(item, depth + 1));
    }
    if (!node.IsMap()) return out;
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) continue;
      // Readers differ in which one counts.
      if (out.Has(entry.first.Scalar())) {
        throw YAML::ParserException(entry.first.Mark(), "a key that is there twice");
      }
      out.entries.push_back(Read(entry.second, depth + 1));
      out.entries.back().key = entry.first.Scalar();
    }
    Merge(out);
    return out;
  }

 private:
  // What a map has itself comes first, and Find() takes the first.
  static void Merge(ConfigNode& map) {
    const ConfigNode* const merged = map.Find(kMergeKey);
    if (merged == nullptr) return;
    const ConfigNode others = *merged;
    map.entries.insert(map.entries.end(), others.entries.begin(), others.entries.end());
    for (const ConfigNode& other : others.items) {
      map.entries.insert(map.entries.end(), other.entries.begin(), other.entries.end());
    }
  }

  size_t nodes_ = 0;
};

// The library takes a byte 4 for the end of the text.
bool IsPlainText(const std::string& text) {
  return text.find_first_of(std::string_view("\0\4", 2)) == std::string::npos;
}

}  // namespace

const ConfigNode* ConfigNode::Find(std::string_view wanted) const {
  for (const ConfigNode& entry : entries) {
    if (entry.key == wanted) return entry.null ? nullptr : &entry;
  }
  return nullptr;
}

bool ConfigNode::Has(std::string_view wanted) const {
  return std::ranges::find(entries, wanted, &ConfigNode::key) != entries.end();
}

std::string_view ConfigNode::TextOf(std::string_view wanted) const {
  const ConfigNode* const value = Find(wanted);
  return value == nullptr ? std::string_view() : std::string_view(value->text);
}

Result<ConfigNode> ReadConfigTree(const std::string& text) {
  if (!IsPlainText(text)) return Fail(Blame::kCaller, "bad YAML: not text in UTF-8");
  try {
    return ConfigTreeReader().Read(YAML::Load(text));
  } catch (const YAML::Exception& e) {
    if (e.mark.is_null()) return Fail(Blame::kCaller, "bad YAML");
    return Fail(Blame::kCaller, "bad YAML, or a key twice in one map, in line {}, column {}",
                e.mark.line + 1, e.mark.column + 1);
  }
}

}  // namespace fathom
