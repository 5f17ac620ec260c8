// What Python's str, list, tuple and dict can do: methods by name.
//
// A name is looked up once, when the template is parsed; at render only the kind of the value
// decides.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/jinja/arguments.h"
#include "text/jinja/render_budget.h"
#include "text/jinja/value.h"

namespace fathom {

struct Method {
  std::string_view name;
  Result<TemplateValue> (*run)(const TemplateValue& receiver, const Arguments& arguments,
                               RenderBudget& budget);
};

// The tables.
std::span<const Method> TextMethods();
std::span<const Method> TextCaseMethods();  // upper, isdigit...
std::span<const Method> ListMethods();      // of lists and tuples
std::span<const Method> DictMethods();

// What can be asked of `loop`.
enum class LoopAttribute : uint8_t {
  kNone,
  kChanged,
  kCycle,
  kDepth,
  kDepth0,
  kFirst,
  kIndex,
  kIndex0,
  kLast,
  kLength,
  kNextItem,
  kPreviousItem,
  kReverseIndex,
  kReverseIndex0,
};

// A name behind a dot, and what it can mean.
struct MethodName {
  std::string name;
  const Method* of_text;
  const Method* of_list;
  const Method* of_dict;
  // Names that would change a list or a dict: the sandbox hides them.
  bool changes_list;
  bool changes_dict;
  LoopAttribute of_loop;

  // nullptr: the value has no such method.
  const Method* For(const TemplateValue& value) const;
};

MethodName FindMethods(std::string_view name);
// Whether Python's str has a method of that name which is not supported here.
bool IsUnsupportedMethod(std::string_view name);

}  // namespace fathom
