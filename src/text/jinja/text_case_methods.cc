#include <string>
#include <string_view>

#include "text/jinja/method.h"
#include "text/unicode/letter_case.h"
#include "text/unicode/utf8.h"

namespace fathom {
namespace {

template <std::string (*kChange)(std::string_view)>
Result<TemplateValue> MethodBy(const TemplateValue& receiver, const Arguments& arguments,
                               RenderBudget& budget) {
  TRY_VOID(BindNone(arguments));
  // A code point becomes three at most.
  if (!budget.SpendText(receiver.text()->size())) return TemplateValue();
  return kChange(*receiver.text());
}

// Whether there is something, and all of it is such.
template <bool (*kIsSuch)(uint32_t)>
Result<TemplateValue> AllAre(const TemplateValue& receiver, const Arguments& arguments,
                             RenderBudget& budget) {
  TRY_VOID(BindNone(arguments));
  budget.SpendText(receiver.text()->size());
  for (std::string_view rest = *receiver.text(); !rest.empty();) {
    const CodePoint point = FirstCodePoint(rest);
    if (!kIsSuch(point.value)) return false;
    rest.remove_prefix(point.length);
  }
  return !receiver.text()->empty();
}

// Whether there are letters that have a case, and all of them have this one.
template <bool (*kIsSuch)(uint32_t)>
Result<TemplateValue> AllCasedAre(const TemplateValue& receiver, const Arguments& arguments,
                                  RenderBudget& budget) {
  TRY_VOID(BindNone(arguments));
  budget.SpendText(receiver.text()->size());
  bool cased = false;
  for (std::string_view rest = *receiver.text(); !rest.empty();) {
    const CodePoint point = FirstCodePoint(rest);
    if (IsCased(point.value)) {
      if (!kIsSuch(point.value)) return false;
      cased = true;
    }
    rest.remove_prefix(point.length);
  }
  return cased;
}

bool IsAlphanumeric(uint32_t value) { return IsLetter(value) || IsNumeric(value); }
bool IsAscii(uint32_t value) { return value < 0x80; }

// Of the empty text these two are true.
template <bool (*kIsSuch)(uint32_t)>
Result<TemplateValue> NoneIsNot(const TemplateValue& receiver, const Arguments& arguments,
                                RenderBudget& budget) {
  if (receiver.text()->empty()) return true;
  return AllAre<kIsSuch>(receiver, arguments, budget);
}

constexpr Method kMethods[] = {
    {"capitalize", MethodBy<ToCapitalized>},
    {"isalnum", AllAre<IsAlphanumeric>},
    {"isalpha", AllAre<IsLetter>},
    {"isascii", NoneIsNot<IsAscii>},
    {"isdigit", AllAre<IsDigit>},
    {"islower", AllCasedAre<IsLower>},
    {"isprintable", NoneIsNot<IsPrintable>},
    {"isspace", AllAre<IsSpace>},
    {"isupper", AllCasedAre<IsUpper>},
    {"lower", MethodBy<ToLower>},
    {"swapcase", MethodBy<ToSwappedCase>},
    {"title", MethodBy<ToTitle>},
    {"upper", MethodBy<ToUpper>},
};

}  // namespace

std::span<const Method> TextCaseMethods() { return kMethods; }

}  // namespace fathom
