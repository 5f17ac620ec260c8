#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "text/jinja/bounded_text.h"
#include "text/jinja/filter.h"
#include "text/jinja/markup.h"
#include "text/jinja/python_format.h"
#include "text/jinja/python_json.h"
#include "text/jinja/python_operator.h"
#include "text/jinja/python_slice.h"
#include "text/jinja/python_text.h"
#include "text/jinja/text_position.h"
#include "text/jinja/text_replace.h"
#include "text/jinja/text_split.h"
#include "text/jinja/text_strip.h"
#include "text/unicode/letter_case.h"
#include "text/unicode/utf8.h"

namespace fathom {
namespace {

template <std::string (*kChange)(std::string_view)>
Result<TemplateValue> FilterBy(const TemplateValue& input, const Arguments& arguments,
                               RenderBudget& budget) {
  TRY_VOID(BindNone(arguments));
  TRY(const TemplateValue text, Str(input, budget));
  if (!budget.SpendText(text.text()->size())) return TemplateValue();
  return kChange(*text.text());
}

// jinja2's own idea of words: what stands between these.
bool BeginsWord(uint32_t value) {
  return value == '-' || value == '(' || value == '{' || value == '[' || value == '<' ||
         IsSpace(value);
}

std::string TitleWords(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    size_t length = 0;
    const bool gap = BeginsWord(FirstCodePoint(text).value);
    while (length < text.size()) {
      const CodePoint point = FirstCodePoint(text.substr(length));
      if (BeginsWord(point.value) != gap) break;
      length += point.length;
    }
    const size_t first = FirstCodePoint(text).length;
    out += ToUpper(text.substr(0, first));
    out += ToLower(text.substr(first, length - first));
    text.remove_prefix(length);
  }
  return out;
}

Result<TemplateValue> Escape(const TemplateValue& input, const Arguments& arguments,
                             RenderBudget& budget) {
  TRY_VOID(BindNone(arguments));
  TRY(const TemplateValue text, Str(input, budget));
  BoundedText out(budget);
  out.Add(Escaped(*text.text()));
  return std::move(out).TakeValue();
}

Result<TemplateValue> String(const TemplateValue& input, const Arguments& arguments,
                             RenderBudget& budget) {
  TRY_VOID(BindNone(arguments));
  return Str(input, budget);
}

Result<TemplateValue> Trim(const TemplateValue& input, const Arguments& arguments,
                           RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"chars"}, 0));
  TRY(const TemplateValue text, Str(input, budget));
  std::string_view view = *text.text();
  if (bound[0] == nullptr || bound[0]->is_none()) {
    view = StripRight(StripLeft(view));
  } else {
    TRY(const std::string_view characters, TextOr(bound[0], ""));
    view = StripRight(StripLeft(view, characters), characters);
  }
  if (view.size() == text.text()->size()) return text;
  budget.SpendText(view.size());
  return view;
}

Result<TemplateValue> ReplaceFilter(const TemplateValue& input, const Arguments& arguments,
                                    RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"old", "new", "count"}, 2));
  TRY(const TemplateValue text, Str(input, budget));
  TRY(const TemplateValue old, Str(*bound[0], budget));
  TRY(const TemplateValue by, Str(*bound[1], budget));
  const bool all = bound[2] == nullptr || bound[2]->is_none();
  TRY(const int64_t most, IntegerOr(all ? nullptr : bound[2], -1));
  return ReplaceText(*text.text(), *old.text(), *by.text(), most, budget);
}

Result<TemplateValue> Indent(const TemplateValue& input, const Arguments& arguments,
                             RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"width", "first", "blank"}, 0));
  TRY(const std::string_view text, TextOr(&input, ""));
  const bool by_text = bound[0] != nullptr && bound[0]->is_text();
  TRY(const int64_t width, IntegerOr(by_text ? nullptr : bound[0], 4));
  if (width > 0 && !budget.SpendText(static_cast<size_t>(width))) return TemplateValue();
  const std::string indent =
      by_text ? *bound[0]->text()
              : std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  const bool blank = TruthOr(bound[2], false);
  const std::string with_newline = std::string(text) + '\n';
  BoundedText out(budget);
  bool first = true;
  for (const std::string_view line : SplitLines(with_newline, false)) {
    if (!first) out.Add("\n");
    if (first ? TruthOr(bound[1], false) : blank || !line.empty()) out.Add(indent);
    first = false;
    out.Add(line);
  }
  return std::move(out).TakeValue();
}

Result<TemplateValue> Truncate(const TemplateValue& input, const Arguments& arguments,
                               RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"length", "killwords", "end", "leeway"}, 0));
  TRY(const std::string_view text, TextOr(&input, ""));
  TRY(const int64_t length, IntegerOr(bound[0], 255));
  TRY(const std::string_view end, TextOr(bound[2], "..."));
  const bool usual = bound[3] == nullptr || bound[3]->is_none();
  TRY(const int64_t leeway, IntegerOr(usual ? nullptr : bound[3], 5));
  const auto end_length = static_cast<int64_t>(CountCodePoints(end));
  if (length < end_length || leeway < 0) return Fail(Blame::kCaller, "a length that is too small");
  const auto text_length = static_cast<int64_t>(CountCodePoints(text));
  if (text_length <= length || text_length - length <= leeway) return input;
  std::string_view kept = text.substr(0, OffsetOf(text, static_cast<size_t>(length - end_length)));
  if (!TruthOr(bound[1], false)) kept = SplitRight(kept, " ", 1).front();
  BoundedText out(budget);
  out.Add(kept);
  out.Add(end);
  return std::move(out).TakeValue();
}

Result<TemplateValue> Center(const TemplateValue& input, const Arguments& arguments,
                             RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"width"}, 0));
  TRY(const TemplateValue text, Str(input, budget));
  TRY(const int64_t width, IntegerOr(bound[0], 80));
  const auto length = static_cast<int64_t>(CountCodePoints(*text.text()));
  if (width <= length) return text;
  const int64_t missing = width - length;
  const int64_t before = missing / 2 + (missing & width & 1);
  BoundedText out(budget);
  out.Add(static_cast<size_t>(before), ' ');
  out.Add(*text.text());
  out.Add(static_cast<size_t>(missing - before), ' ');
  return std::move(out).TakeValue();
}

Result<TemplateValue> WordCount(const TemplateValue& input, const Arguments& arguments,
                                RenderBudget& budget) {
  TRY_VOID(BindNone(arguments));
  TRY(const TemplateValue text, Str(input, budget));
  int64_t count = 0;
  bool inside = false;
  for (std::string_view rest = *text.text(); !rest.empty();) {
    const CodePoint point = FirstCodePoint(rest);
    const bool word = point.value == '_' || IsLetter(point.value) || IsNumeric(point.value);
    if (word && !inside) ++count;
    inside = word;
    rest.remove_prefix(point.length);
  }
  return count;
}

Result<TemplateValue> Format(const TemplateValue& input, const Arguments& arguments,
                             RenderBudget& budget) {
  TRY(const TemplateValue text, Str(input, budget));
  if (!arguments.positional.empty() && !arguments.keywords.empty()) {
    return Fail(Blame::kCaller, "both positional and named values");
  }
  if (arguments.keywords.empty()) {
    const TemplateValue values(TemplateList(arguments.positional), SequenceKind::kTuple);
    return FormatPercent(*text.text(), values, budget);
  }
  TemplateDict values;
  for (const auto& [name, value] : arguments.keywords) SetMember(values, name, value);
  return FormatPercent(*text.text(), TemplateValue(std::move(values)), budget);
}

Result<JsonStyle> StyleOf(const Bound<4>& bound) {
  JsonStyle style{.ascii = TruthOr(bound[0], false), .sort_keys = TruthOr(bound[3], false)};
  if (bound[1] != nullptr && bound[1]->is_text()) {
    style.indent = *bound[1]->text();
  } else if (bound[1] != nullptr && !bound[1]->is_none()) {
    TRY(const int64_t width, IntegerOr(bound[1], 0));
    if (width > 1000) return Fail(Blame::kCaller, "an indent that is too wide");
    style.indent = std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  if (style.indent) style.item_separator = ",";
  if (bound[2] == nullptr || bound[2]->is_none()) return style;
  const TemplateSequence* separators = bound[2]->sequence();
  if (separators == nullptr || separators->items.size() != 2 ||
      !std::ranges::all_of(separators->items, &TemplateValue::is_text)) {
    return Fail(Blame::kCaller, "expected two separators");
  }
  style.item_separator = *separators->items[0].text();
  style.key_separator = *separators->items[1].text();
  return style;
}

Result<TemplateValue> ToJson(const TemplateValue& input, const Arguments& arguments,
                             RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}, 0));
  TRY(const JsonStyle style, StyleOf(bound));
  return DumpJson(input, style, budget);
}

constexpr Filter kTextFilters[] = {
    {"capitalize", FilterBy<ToCapitalized>},
    {"center", Center},
    {"e", Escape},
    {"escape", Escape},
    {"forceescape", Escape},
    {"format", Format},
    {"indent", Indent},
    {"lower", FilterBy<ToLower>},
    {"replace", ReplaceFilter},
    {"safe", String},
    {"string", String},
    {"title", FilterBy<TitleWords>},
    {"tojson", ToJson},
    {"trim", Trim},
    {"truncate", Truncate},
    {"upper", FilterBy<ToUpper>},
    {"wordcount", WordCount},
};

}  // namespace

std::span<const Filter> TextFilters() { return kTextFilters; }

}  // namespace fathom
