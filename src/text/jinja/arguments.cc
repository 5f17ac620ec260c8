#include "text/jinja/arguments.h"

#include <algorithm>

#include "text/jinja/python_operator.h"
#include "text/jinja/python_text.h"

namespace fathom {

Result<> Bind(const Arguments& arguments, std::span<const std::string_view> names, size_t required,
              std::span<const TemplateValue*> out) {
  if (arguments.positional.size() > names.size()) {
    return Fail(Blame::kCaller, "expected {} arguments, got {}", names.size(),
                arguments.positional.size());
  }
  std::ranges::fill(out, nullptr);
  for (size_t i = 0; i < arguments.positional.size(); ++i) out[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.keywords) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) return Fail(Blame::kCaller, "an unknown argument");
    const TemplateValue*& place = out[static_cast<size_t>(found - names.begin())];
    if (place != nullptr) return Fail(Blame::kCaller, "argument '{}' is given twice", *found);
    place = &value;
  }
  const auto missing = std::ranges::find(out.first(required), nullptr);
  if (missing == out.begin() + static_cast<ptrdiff_t>(required)) return {};
  return Fail(Blame::kCaller, "argument '{}' is missing",
              names[static_cast<size_t>(missing - out.begin())]);
}

Result<> BindNone(const Arguments& arguments) { return Bind(arguments, {}, 0, {}); }

Result<int64_t> IntegerOr(const TemplateValue* value, int64_t fallback) {
  if (value == nullptr) return fallback;
  if (const int64_t* integer = value->integer()) return *integer;
  if (const bool* boolean = value->boolean()) return *boolean ? 1 : 0;
  return Fail(Blame::kCaller, "expected a number, got {}", TypeName(*value));
}

Result<std::string_view> TextOr(const TemplateValue* value, std::string_view fallback) {
  if (value == nullptr) return fallback;
  if (const std::string* text = value->text()) return *text;
  return Fail(Blame::kCaller, "expected a text, got {}", TypeName(*value));
}

bool TruthOr(const TemplateValue* value, bool fallback) {
  return value == nullptr ? fallback : Truth(*value);
}

}  // namespace fathom
