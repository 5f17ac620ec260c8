#include "text/jinja/method.h"

#include <algorithm>

namespace fathom {
namespace {

constexpr std::string_view kChangesList[] = {"append", "clear", "pop",    "reverse",
                                             "insert", "sort",  "extend", "remove"};
constexpr std::string_view kChangesDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view kUnsupported[] = {"casefold", "encode",    "expandtabs",   "format_map",
                                             "fromkeys", "isdecimal", "isidentifier", "isnumeric",
                                             "istitle",  "maketrans", "translate"};

constexpr std::string_view kLoopAttributes[] = {
    "",       "changed", "cycle",  "depth",    "depth0",   "first",    "index",
    "index0", "last",    "length", "nextitem", "previtem", "revindex", "revindex0"};

LoopAttribute LoopAttributeOf(std::string_view name) {
  const auto* found = std::ranges::find(kLoopAttributes, name);
  if (found == std::end(kLoopAttributes)) return LoopAttribute::kNone;
  return static_cast<LoopAttribute>(found - std::begin(kLoopAttributes));
}

const Method* Find(std::span<const Method> methods, std::string_view name) {
  const auto found = std::ranges::find(methods, name, &Method::name);
  return found == methods.end() ? nullptr : &*found;
}

bool Has(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

const Method* MethodName::For(const TemplateValue& value) const {
  switch (value.kind()) {
    case TemplateValue::Kind::kText:
      return of_text;
    case TemplateValue::Kind::kSequence:
      return value.sequence()->kind <= SequenceKind::kRange ? of_list : nullptr;
    case TemplateValue::Kind::kDict:
      return of_dict;
    default:
      return nullptr;
  }
}

MethodName FindMethods(std::string_view name) {
  const Method* of_text = Find(TextMethods(), name);
  if (of_text == nullptr) of_text = Find(TextCaseMethods(), name);
  return {.name = std::string(name),
          .of_text = of_text,
          .of_list = Find(ListMethods(), name),
          .of_dict = Find(DictMethods(), name),
          .changes_list = Has(kChangesList, name),
          .changes_dict = Has(kChangesDict, name),
          .of_loop = LoopAttributeOf(name)};
}

bool IsUnsupportedMethod(std::string_view name) { return Has(kUnsupported, name); }

}  // namespace fathom
