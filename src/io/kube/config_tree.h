// What does the YAML of a kubeconfig say? JSON is read as the YAML that it is.
//
// Every scalar is its text, whatever it looks like: a token of digits is a token. Of several
// documents the first one counts, as with kubectl.
//
// Memory  At most kMaxConfigNodes values, those behind anchors counted at each use; at most
// kMaxConfigDepth
//         deep.
// Errors  kCaller: line and column, and never a part of the text, which has secrets in it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fathom {

struct ConfigNode {
  std::string key;                  // of an entry of a map
  std::string text;                 // of a scalar
  std::vector<ConfigNode> items;    // of a list
  std::vector<ConfigNode> entries;  // of a map
  bool null = true;

  // nullptr where this is no map, or has no such key, or the key has no value.
  const ConfigNode* Find(std::string_view wanted) const;
  bool Has(std::string_view wanted) const;
  // The scalar under that key; empty where there is none.
  std::string_view TextOf(std::string_view wanted) const;
};

constexpr size_t kMaxConfigNodes = 100'000;
constexpr size_t kMaxConfigDepth = 50;

Result<ConfigNode> ReadConfigTree(const std::string& text);

}  // namespace fathom
