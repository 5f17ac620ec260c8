#include "diagnose/manifest/foothold.h"

#include <algorithm>

namespace fathom {
namespace {

size_t LineStart(std::string_view text, size_t at) {
  const size_t before = at == 0 ? text.npos : text.rfind('\n', at - 1);
  return before == text.npos ? 0 : before + 1;
}

size_t LineAfter(std::string_view text, size_t at) {
  const size_t end = text.find('\n', at);
  return end == text.npos ? text.size() : end + 1;
}

Foothold At(const YamlNode& node, size_t at, size_t indent, Foothold::Form form) {
  Foothold foothold;
  foothold.form = form;
  foothold.file = node.passage->file().name;
  foothold.offset = node.passage->OffsetOf(at);
  foothold.indent = indent;
  return foothold;
}

// Of the dash in front of the first item, if nothing else stands before it.
std::optional<size_t> DashColumn(const YamlNode& list) {
  const std::string_view text = list.passage->file().text;
  const size_t item = list.passage->OffsetOf(list.items.front()->offset);
  const size_t start = LineStart(text, item);
  const size_t dash = text.find_first_not_of(' ', start);
  if (dash == text.npos || dash >= item || text[dash] != '-') return std::nullopt;
  if (text.substr(dash + 1, item - dash - 1).find_first_not_of(' ') != text.npos)
    return std::nullopt;
  return dash - start;
}

bool OnOneLine(const YamlNode& scalar) {
  const std::string_view text = scalar.passage->text();
  return scalar.scalar() && scalar.length > 0 && scalar.quote != '|' && scalar.quote != '>' &&
         !text.substr(scalar.offset, scalar.length).contains('\n');
}

// The line behind which a key can be added: the image's, or that of the first simple value.
const YamlNode::Entry* Neighbour(const YamlNode& map) {
  const YamlNode::Entry* first = nullptr;
  for (const YamlNode::Entry& entry : map.entries) {
    // One that stands elsewhere is an alias.
    const bool here = !entry.merged && entry.value->offset >= entry.key->offset;
    if (!here || !OnOneLine(*entry.value)) continue;
    if (entry.key->text == "image") return &entry;
    if (first == nullptr) first = &entry;
  }
  return first;
}

}  // namespace

Foothold FootholdIn(const YamlNode& node, Foothold::Form form) {
  if (node.sequence() && node.flow) {
    const bool words = form == Foothold::Form::kYamlItems && node.passage->verbatim();
    const size_t end = node.items.empty() ? node.offset + 1 : node.End();
    return words ? At(node, end, 0, Foothold::Form::kYamlFlowItems) : Foothold{};
  }
  if (!node.passage->verbatim() || node.flow) return {};
  const size_t after = LineAfter(node.passage->file().text, node.passage->OffsetOf(node.End()));
  const size_t start = node.passage->OffsetOf(0);
  if (node.sequence() && !node.items.empty()) {
    const auto dash = DashColumn(node);
    return dash ? At(node, after - start, *dash, form) : Foothold{};
  }
  if (node.map() && !node.entries.empty()) {
    return At(node, after - start, node.passage->ColumnOf(node.entries.front().key->offset) - 1,
              form);
  }
  return {};
}

Foothold FootholdForMissing(const YamlNode& map, std::string_view key, Foothold::Form form) {
  if (!map.map() || map.flow || !map.passage->verbatim()) return {};
  const YamlNode::Entry* neighbour = Neighbour(map);
  if (neighbour == nullptr) return {};
  const size_t after =
      LineAfter(map.passage->file().text, map.passage->OffsetOf(neighbour->value->End()));
  Foothold foothold = At(map, after - map.passage->OffsetOf(0),
                         map.passage->ColumnOf(neighbour->key->offset) - 1, form);
  foothold.missing = true;
  foothold.key = key;
  return foothold;
}

}  // namespace fathom
