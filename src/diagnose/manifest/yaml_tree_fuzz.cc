#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "diagnose/manifest/yaml_tree.h"

namespace fathom {
namespace {

// What a node says of its place must be true, whatever the text is.
void CheckNode(const YamlNode& node, const SourceFile& file) {
  CHECK(node.offset <= file.text.size());
  CHECK(node.offset + node.length <= file.text.size());
  if (const auto passage = PassageOf(node)) {
    const std::string_view text = passage->text();
    for (size_t at = 0; at < text.size(); ++at) CHECK(passage->OffsetOf(at) < file.text.size());
    if (passage->verbatim()) CHECK(passage->SpanOf(0, text.size()).has_value());
  }
  for (const YamlNode* item : node.items) CheckNode(*item, file);
  for (const YamlNode::Entry& entry : node.entries) {
    CheckNode(*entry.key, file);
    CheckNode(*entry.value, file);
  }
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fathom::SourceFile file{"x.yaml", std::string(reinterpret_cast<const char*>(data), size)};
  const auto tree = fathom::YamlTree::Parse(fathom::Passage(file));
  if (!tree) {
    CHECK(tree.error().what.starts_with("x.yaml"));
    return 0;
  }
  for (const fathom::YamlNode* document : tree->documents()) fathom::CheckNode(*document, file);
  return 0;
}
