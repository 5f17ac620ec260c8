#include "text/jinja/markup.h"

#include <algorithm>
#include <array>
#include <utility>

namespace fathom {
namespace {

// What these make of a markup is one.
constexpr auto kKeepingFilters = std::to_array<std::string_view>(
    {"capitalize", "center", "indent", "lower", "reverse", "trim", "upper"});
// These would escape their arguments.
constexpr auto kEscapingFilters = std::to_array<std::string_view>({"format", "last", "truncate"});

// Without arguments, which would be escaped.
constexpr auto kKeepingMethods = std::to_array<std::string_view>(
    {"capitalize", "lower", "lstrip", "rstrip", "strip", "swapcase", "title", "upper"});
// These look, and make no text.
constexpr auto kLookingMethods = std::to_array<std::string_view>(
    {"count", "endswith", "find", "index", "rfind", "rindex", "startswith"});

bool IsAmong(const auto& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::string_view EntityOf(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '\'':
      return "&#39;";
    case '"':
      return "&#34;";
    default:
      return {};
  }
}

std::unexpected<Error> NotForMarkup() {
  return Fail(Blame::kCaller, "is not supported for what 'safe' or 'escape' returns");
}

}  // namespace

std::string Escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const std::string_view entity = EntityOf(c);
    if (entity.empty()) {
      out += c;
    } else {
      out += entity;
    }
  }
  return out;
}

Result<TemplateValue> RunFilter(const Filter& filter, const TemplateValue& input,
                                const Arguments& arguments, RenderBudget& budget) {
  const bool markup = input.is_markup();
  if (markup && IsAmong(kEscapingFilters, filter.name)) return NotForMarkup();
  if (markup && (filter.name == "e" || filter.name == "escape")) return input;
  TRY(TemplateValue result, filter.run(input, arguments, budget));
  const bool makes = MakesMarkup(filter) || (markup && IsAmong(kKeepingFilters, filter.name));
  return makes ? std::move(result).AsMarkup() : std::move(result);
}

Result<TemplateValue> RunMethod(const Method& method, const TemplateValue& receiver,
                                const Arguments& arguments, RenderBudget& budget) {
  if (!receiver.is_markup()) return method.run(receiver, arguments, budget);
  const bool looks = IsAmong(kLookingMethods, method.name) || method.name.starts_with("is");
  const bool keeps = IsAmong(kKeepingMethods, method.name) && arguments.positional.empty() &&
                     arguments.keywords.empty();
  if (!looks && !keeps) return NotForMarkup();
  TRY(TemplateValue result, method.run(receiver, arguments, budget));
  return keeps ? std::move(result).AsMarkup() : std::move(result);
}

}  // namespace fathom
