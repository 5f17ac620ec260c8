#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "text/jinja/bounded_text.h"
#include "text/jinja/method.h"
#include "text/jinja/python_format.h"
#include "text/jinja/python_operator.h"
#include "text/jinja/python_slice.h"
#include "text/jinja/python_text.h"
#include "text/jinja/text_position.h"
#include "text/jinja/text_replace.h"
#include "text/jinja/text_split.h"
#include "text/jinja/text_strip.h"

namespace fathom {
namespace {

bool IsMissing(const TemplateValue* value) { return value == nullptr || value->is_none(); }

Result<std::optional<int64_t>> OptionalBound(const TemplateValue* value) {
  if (IsMissing(value)) return std::nullopt;
  TRY(const int64_t number, IntegerOr(value, 0));
  return number;
}

enum class Side : uint8_t { kLeft, kRight, kBoth };

template <Side kSide>
Result<TemplateValue> Strip(const TemplateValue& receiver, const Arguments& arguments,
                            RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"chars"}, 0));
  const std::string& whole = *receiver.text();
  std::string_view text = whole;
  if (IsMissing(bound[0])) {
    if (kSide != Side::kRight) text = StripLeft(text);
    if (kSide != Side::kLeft) text = StripRight(text);
  } else {
    TRY(const std::string_view characters, TextOr(bound[0], ""));
    budget.SpendText(characters.size() * 8);
    if (kSide != Side::kRight) text = StripLeft(text, characters);
    if (kSide != Side::kLeft) text = StripRight(text, characters);
  }
  if (text.size() == whole.size()) return receiver;
  budget.SpendText(text.size());
  return text;
}

TemplateValue List(const std::vector<std::string_view>& pieces, RenderBudget& budget) {
  TemplateList items;
  if (!budget.Spend(pieces.size())) return items;
  items.reserve(pieces.size());
  for (const std::string_view piece : pieces) items.emplace_back(piece);
  return items;
}

using Splitter = std::vector<std::string_view> (*)(std::string_view,
                                                   std::optional<std::string_view>, int64_t);

template <Splitter kSplit>
Result<TemplateValue> Split(const TemplateValue& receiver, const Arguments& arguments,
                            RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"sep", "maxsplit"}, 0));
  std::optional<std::string_view> separator;
  if (!IsMissing(bound[0])) {
    TRY(separator, TextOr(bound[0], ""));
    if (separator->empty()) return Fail(Blame::kCaller, "an empty separator");
  }
  TRY(const int64_t most, IntegerOr(bound[1], -1));
  if (!budget.SpendText(receiver.text()->size())) return TemplateValue();
  return List(kSplit(*receiver.text(), separator, most), budget);
}

Result<TemplateValue> SplitLinesMethod(const TemplateValue& receiver, const Arguments& arguments,
                                       RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"keepends"}, 0));
  if (!budget.SpendText(receiver.text()->size())) return TemplateValue();
  return List(SplitLines(*receiver.text(), TruthOr(bound[0], false)), budget);
}

template <bool kFromLeft>
Result<TemplateValue> Partition(const TemplateValue& receiver, const Arguments& arguments,
                                RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"sep"}, 1));
  TRY(const std::string_view separator, TextOr(bound[0], ""));
  if (separator.empty()) return Fail(Blame::kCaller, "an empty separator");
  const std::string_view text = *receiver.text();
  if (!budget.SpendText(text.size())) return TemplateValue();
  const size_t at = kFromLeft ? text.find(separator) : text.rfind(separator);
  TemplateList parts{"", "", ""};
  if (at == std::string_view::npos) {
    parts[kFromLeft ? 0 : 2] = receiver;
  } else {
    parts = {text.substr(0, at), separator, text.substr(at + separator.size())};
  }
  return TemplateValue(std::move(parts), SequenceKind::kTuple);
}

// startswith and endswith: one text or a tuple of them, in a part of the receiver.
template <bool kStart>
Result<TemplateValue> HasEnd(const TemplateValue& receiver, const Arguments& arguments,
                             RenderBudget&) {
  TRY(const auto bound, Bind(arguments, {"prefix", "start", "end"}, 1));
  TRY(const std::optional<int64_t> start, OptionalBound(bound[1]));
  TRY(const std::optional<int64_t> stop, OptionalBound(bound[2]));
  const std::string_view text = TakeBytes(*receiver.text(), start, stop);
  const auto has = [&](const TemplateValue& end) {
    return kStart ? text.starts_with(*end.text()) : text.ends_with(*end.text());
  };
  if (bound[0]->is_text()) return has(*bound[0]);
  const TemplateSequence* ends = bound[0]->sequence();
  const bool tuple = ends != nullptr && ends->kind == SequenceKind::kTuple;
  if (!tuple || !std::ranges::all_of(ends->items, &TemplateValue::is_text)) {
    return Fail(Blame::kCaller, "expected a text or a tuple of texts, got {}", TypeName(*bound[0]));
  }
  return std::ranges::any_of(ends->items, has);
}

struct Search {
  std::string_view text;  // where to look
  std::string_view wanted;
  size_t skipped;  // code points before it
};

Result<Search> SearchOf(const TemplateValue& receiver, const Arguments& arguments,
                        RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"sub", "start", "end"}, 1));
  TRY(const std::string_view wanted, TextOr(bound[0], ""));
  TRY(const std::optional<int64_t> start, OptionalBound(bound[1]));
  TRY(const std::optional<int64_t> stop, OptionalBound(bound[2]));
  const std::string_view whole = *receiver.text();
  budget.SpendText(whole.size());
  const std::string_view text = TakeBytes(whole, start, stop);
  const size_t skipped =
      text.empty()
          ? 0
          : CountCodePoints(whole.substr(0, static_cast<size_t>(text.data() - whole.data())));
  return Search{text, wanted, skipped};
}

template <bool kFromLeft, bool kMustBeThere>
Result<TemplateValue> FindText(const TemplateValue& receiver, const Arguments& arguments,
                               RenderBudget& budget) {
  TRY(const Search search, SearchOf(receiver, arguments, budget));
  const size_t at = kFromLeft ? search.text.find(search.wanted) : search.text.rfind(search.wanted);
  if (at == std::string_view::npos) {
    if (kMustBeThere) return Fail(Blame::kCaller, "a text that is not in the other one");
    return int64_t{-1};
  }
  return static_cast<int64_t>(search.skipped + CountCodePoints(search.text.substr(0, at)));
}

Result<TemplateValue> Count(const TemplateValue& receiver, const Arguments& arguments,
                            RenderBudget& budget) {
  TRY(Search search, SearchOf(receiver, arguments, budget));
  if (search.wanted.empty()) return static_cast<int64_t>(CountCodePoints(search.text) + 1);
  int64_t count = 0;
  for (size_t at = 0; (at = search.text.find(search.wanted, at)) != std::string_view::npos;) {
    at += search.wanted.size();
    ++count;
  }
  return count;
}

Result<TemplateValue> Replace(const TemplateValue& receiver, const Arguments& arguments,
                              RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"old", "new", "count"}, 2));
  TRY(const std::string_view old, TextOr(bound[0], ""));
  TRY(const std::string_view by, TextOr(bound[1], ""));
  TRY(const int64_t most, IntegerOr(bound[2], -1));
  return ReplaceText(*receiver.text(), old, by, most, budget);
}

Result<TemplateValue> Join(const TemplateValue& receiver, const Arguments& arguments,
                           RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"iterable"}, 1));
  TRY(const TemplateValue items, Items(*bound[0], budget));
  BoundedText out(budget);
  bool first = true;
  for (const TemplateValue& item : items.sequence()->items) {
    if (!item.is_text()) return Fail(Blame::kCaller, "{} among the texts to join", TypeName(item));
    if (!first) out.Add(*receiver.text());
    first = false;
    out.Add(*item.text());
  }
  return std::move(out).TakeValue();
}

Result<TemplateValue> FormatMethod(const TemplateValue& receiver, const Arguments& arguments,
                                   RenderBudget& budget) {
  return FormatBraces(*receiver.text(), arguments, budget);
}

template <bool kPrefix>
Result<TemplateValue> RemoveEnd(const TemplateValue& receiver, const Arguments& arguments,
                                RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"end"}, 1));
  TRY(const std::string_view end, TextOr(bound[0], ""));
  std::string_view text = *receiver.text();
  const bool has = kPrefix ? text.starts_with(end) : text.ends_with(end);
  if (!has || end.empty()) return receiver;
  kPrefix ? text.remove_prefix(end.size()) : text.remove_suffix(end.size());
  budget.SpendText(text.size());
  return text;
}

Result<TemplateValue> ZeroFill(const TemplateValue& receiver, const Arguments& arguments,
                               RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"width"}, 1));
  TRY(const int64_t width, IntegerOr(bound[0], 0));
  const std::string_view text = *receiver.text();
  const auto length = static_cast<int64_t>(CountCodePoints(text));
  if (width <= length) return receiver;
  const size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  BoundedText out(budget);
  out.Add(text.substr(0, sign));
  out.Add(static_cast<size_t>(width - length), '0');
  out.Add(text.substr(sign));
  return std::move(out).TakeValue();
}

// ljust, rjust, center.
template <Side kSide>
Result<TemplateValue> Justify(const TemplateValue& receiver, const Arguments& arguments,
                              RenderBudget& budget) {
  TRY(const auto bound, Bind(arguments, {"width", "fillchar"}, 1));
  TRY(const int64_t width, IntegerOr(bound[0], 0));
  TRY(const std::string_view fill, TextOr(bound[1], " "));
  if (CountCodePoints(fill) != 1) return Fail(Blame::kCaller, "expected one character");
  const auto length = static_cast<int64_t>(CountCodePoints(*receiver.text()));
  if (width <= length) return receiver;
  const int64_t missing = width - length;
  // As Python puts the odd one in the middle of an odd width.
  const int64_t center = missing / 2 + (missing & width & 1);
  const int64_t before = kSide == Side::kLeft ? 0 : kSide == Side::kRight ? missing : center;
  BoundedText out(budget);
  for (int64_t i = 0; i < before && out.open(); ++i) out.Add(fill);
  out.Add(*receiver.text());
  for (int64_t i = before; i < missing && out.open(); ++i) out.Add(fill);
  return std::move(out).TakeValue();
}

constexpr Method kTextMethods[] = {
    {"center", Justify<Side::kBoth>},
    {"count", Count},
    {"endswith", HasEnd<false>},
    {"find", FindText<true, false>},
    {"format", FormatMethod},
    {"index", FindText<true, true>},
    {"join", Join},
    {"ljust", Justify<Side::kLeft>},
    {"lstrip", Strip<Side::kLeft>},
    {"partition", Partition<true>},
    {"removeprefix", RemoveEnd<true>},
    {"removesuffix", RemoveEnd<false>},
    {"replace", Replace},
    {"rfind", FindText<false, false>},
    {"rindex", FindText<false, true>},
    {"rjust", Justify<Side::kRight>},
    {"rpartition", Partition<false>},
    {"rsplit", Split<SplitRight>},
    {"rstrip", Strip<Side::kRight>},
    {"split", Split<SplitLeft>},
    {"splitlines", SplitLinesMethod},
    {"startswith", HasEnd<true>},
    {"strip", Strip<Side::kBoth>},
    {"zfill", ZeroFill},
};

}  // namespace

std::span<const Method> TextMethods() { return kTextMethods; }

}  // namespace fathom
