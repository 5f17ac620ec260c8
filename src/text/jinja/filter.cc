#include "text/jinja/filter.h"

#include <algorithm>

namespace fathom {

const Filter* FindFilter(std::string_view name) {
  for (const std::span<const Filter> table :
       {TextFilters(), NumberFilters(), ListFilters(), OrderFilters(), SelectFilters()}) {
    const auto found = std::ranges::find(table, name, &Filter::name);
    if (found != table.end()) return &*found;
  }
  return nullptr;
}

bool MakesMarkup(const Filter& filter) {
  return filter.name == "safe" || filter.name == "e" || filter.name == "escape" ||
         filter.name == "forceescape";
}

NamesWhat NamedByArguments(const Filter& filter) {
  if (filter.name == "map") return NamesWhat::kFilter;
  if (filter.name == "select" || filter.name == "reject") return NamesWhat::kTest;
  if (filter.name == "selectattr" || filter.name == "rejectattr") {
    return NamesWhat::kTestAfterAttribute;
  }
  return NamesWhat::kNothing;
}

}  // namespace fathom
