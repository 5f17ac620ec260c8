// What can stand behind `is`: what jinja2 calls tests, by name.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/jinja/arguments.h"
#include "text/jinja/render_budget.h"
#include "text/jinja/value.h"

namespace fathom {

struct Predicate {
  std::string_view name;
  Result<bool> (*run)(const TemplateValue& value, const Arguments& arguments, RenderBudget& budget);
};

// nullptr: there is none of that name.
const Predicate* FindPredicate(std::string_view name);

}  // namespace fathom
