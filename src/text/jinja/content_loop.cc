#include "text/jinja/content_loop.h"

#include <set>
#include <string_view>
#include <vector>

#include "text/jinja/method.h"
#include "text/jinja/syntax_walk.h"

namespace fathom {
namespace {

// All loops and assignments of a template, wherever they stand.
struct Finds {
  std::vector<const ForStatement*> loops;
  std::vector<const SetStatement*> assignments;
};

void Collect(const Block& block, Finds& finds) {
  for (const Statement& statement : block) {
    if (const auto* loop = std::get_if<ForStatement>(&statement.node)) finds.loops.push_back(loop);
    if (const auto* set = std::get_if<SetStatement>(&statement.node))
      finds.assignments.push_back(set);
    ForEachPart(
        statement, [](const Expression&) {}, [&](const Block& inner) { Collect(inner, finds); });
  }
}

// What filters, tests and slices are taken from: they change which items there are, not whose.
const Expression& Source(const Expression& expression) {
  const ExpressionPtr* input = nullptr;
  if (const auto* filter = std::get_if<FilterUse>(&expression.node)) input = &filter->input;
  if (const auto* test = std::get_if<TestUse>(&expression.node)) input = &test->input;
  if (const auto* slice = std::get_if<Slice>(&expression.node)) input = &slice->object;
  return input == nullptr || *input == nullptr ? expression : Source(**input);
}

using Names = std::set<NameId>;

bool IsName(const Expression& expression, const Names& names) {
  const auto* use = std::get_if<NameUse>(&Source(expression).node);
  return use != nullptr && names.contains(use->name);
}

// Whether it is the content of one of these.
bool IsContent(const Expression& expression, const Names& messages) {
  const Expression& source = Source(expression);
  const Expression* object = nullptr;
  const MethodName* name = nullptr;
  if (const auto* attribute = std::get_if<Attribute>(&source.node)) {
    object = attribute->object.get();
    name = attribute->name;
  } else if (const auto* item = std::get_if<Item>(&source.node)) {
    object = item->object.get();
    name = item->name;
  }
  if (name == nullptr || name->name != "content") return false;
  const auto* use = std::get_if<NameUse>(&object->node);
  return use != nullptr && messages.contains(use->name);
}

// Adds the names that get the value of one that is there, until there are no more.
void AddAliases(const Finds& finds, Names& names) {
  size_t before = 0;
  do {
    before = names.size();
    for (const SetStatement* set : finds.assignments) {
      const bool plain = !set->target.is_tuple && !set->target.attribute;
      if (plain && IsName(*set->value, names)) names.insert(set->target.name);
    }
  } while (names.size() != before);
}

}  // namespace

bool LoopsOverContent(const Function& root, const NameTable& names) {
  Finds finds;
  Collect(root.body, finds);
  Names lists;
  for (NameId name = 0; name < names.names().size(); ++name) {
    if (names.names()[name] == "messages") lists.insert(name);
  }
  AddAliases(finds, lists);
  Names messages;
  for (const ForStatement* loop : finds.loops) {
    if (!loop->target.is_tuple && IsName(*loop->items, lists)) messages.insert(loop->target.name);
  }
  Names contents;
  for (NameId name = 0; name < names.names().size(); ++name) {
    if (names.names()[name] == "content") contents.insert(name);
  }
  for (const ForStatement* loop : finds.loops) {
    if (IsContent(*loop->items, messages) || IsName(*loop->items, contents)) return true;
  }
  return false;
}

}  // namespace fathom
