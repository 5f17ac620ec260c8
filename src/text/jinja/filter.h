// What can stand behind a bar: filters by name.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "text/jinja/arguments.h"
#include "text/jinja/render_budget.h"
#include "text/jinja/value.h"

namespace fathom {

struct Filter {
  std::string_view name;
  Result<TemplateValue> (*run)(const TemplateValue& input, const Arguments& arguments,
                               RenderBudget& budget);
};

// The tables.
std::span<const Filter> TextFilters();
std::span<const Filter> NumberFilters();
std::span<const Filter> ListFilters();
std::span<const Filter> OrderFilters();
std::span<const Filter> SelectFilters();

// nullptr: there is none of that name.
const Filter* FindFilter(std::string_view name);

// Whether what it returns behaves unlike other texts (jinja2's Markup escapes what is added to it).
bool MakesMarkup(const Filter& filter);
// Whether its first argument, or the second one, names another filter, or a test.
enum class NamesWhat : uint8_t { kNothing, kFilter, kTest, kTestAfterAttribute };
NamesWhat NamedByArguments(const Filter& filter);

}  // namespace fathom
