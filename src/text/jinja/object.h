// The values that live and die with a render: macros and methods, namespaces, loops, iterators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "text/jinja/value.h"

namespace fathom {

struct Method;
struct ForStatement;
struct Function;
enum class Builtin : uint8_t { kRange, kNamespace, kDict, kRaiseException, kStrftimeNow };

// A macro, a method with the value it was taken from, or a function of the environment.
struct TemplateCallable {
  const Function* function = nullptr;  // a macro, or what a call block passes on
  size_t outer = 0;                    // where the activation it was defined in stands
  uint64_t outer_serial = 0;           // and which one that is

  const Method* method = nullptr;
  TemplateValue receiver;

  std::optional<Builtin> builtin;
};

struct TemplateNamespace {
  TemplateDict attributes;
};

// What `loop` is inside a loop.
struct TemplateLoop {
  TemplateValue items;  // a sequence
  const ForStatement* statement = nullptr;
  size_t next = 0;      // of items
  bool tested = false;  // whether what is left has passed the loop's own test
  int64_t index0 = -1;
  std::optional<int64_t> length;
  std::optional<TemplateValue> after;  // fetched, not yet its turn
  TemplateValue current;
  TemplateValue before;
  std::optional<TemplateValue> last_changed;
};

// What map, select and their like return: it can be gone through once.
struct TemplateIterator {
  TemplateValue items;  // a sequence
  size_t next = 0;
};

}  // namespace fathom
