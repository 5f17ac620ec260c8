// What a filter, a test, a method or a macro was called with.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/jinja/value.h"

namespace fathom {

struct Arguments {
  std::vector<TemplateValue> positional;
  std::vector<std::pair<std::string, TemplateValue>> keywords;
};

// Sets each of `out` to the argument of that name, or to nullptr. Fails like a Python function of
// these parameters, of which the first `required` have no default.
Result<> Bind(const Arguments& arguments, std::span<const std::string_view> names, size_t required,
              std::span<const TemplateValue*> out);

template <size_t N>
using Bound = std::array<const TemplateValue*, N>;

template <size_t N>
Result<Bound<N>> Bind(const Arguments& arguments, const std::string_view (&names)[N],
                      size_t required) {
  Bound<N> out{};
  TRY_VOID(Bind(arguments, names, required, out));
  return out;
}

Result<> BindNone(const Arguments& arguments);

// What a parameter was given; nullptr: the fallback.
Result<int64_t> IntegerOr(const TemplateValue* value, int64_t fallback);
Result<std::string_view> TextOr(const TemplateValue* value, std::string_view fallback);
bool TruthOr(const TemplateValue* value, bool fallback);

}  // namespace fathom
