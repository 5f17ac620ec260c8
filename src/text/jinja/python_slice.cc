#include "text/jinja/python_slice.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/python_text.h"
#include "text/jinja/text_position.h"
#include "text/unicode/utf8.h"

namespace fathom {
namespace {

// What Python's slice.indices() says.
struct Steps {
  int64_t start;
  int64_t step;
  uint64_t count;
};

int64_t Clamp(std::optional<int64_t> bound, int64_t missing, int64_t length, bool backwards) {
  if (!bound) return missing;
  const int64_t lowest = backwards ? -1 : 0;
  const int64_t highest = backwards ? length - 1 : length;
  const int64_t value = *bound < 0 ? *bound + length : *bound;
  return std::clamp(value, lowest, std::max(lowest, highest));
}

Steps StepsOf(const SliceRange& range, int64_t length) {
  // A step that is larger than the whole takes one item, however large it is.
  const int64_t step = std::clamp(range.step.value_or(1), -length - 1, length + 1);
  const bool backwards = step < 0;
  const int64_t start = Clamp(range.start, backwards ? length - 1 : 0, length, backwards);
  const int64_t stop = Clamp(range.stop, backwards ? -1 : length, length, backwards);
  const int64_t distance = backwards ? start - stop : stop - start;
  if (distance <= 0) return {start, step, 0};
  const int64_t stride = backwards ? -step : step;
  return {start, step, static_cast<uint64_t>((distance - 1) / stride + 1)};
}

TemplateValue SliceText(const std::string& text, const SliceRange& range, RenderBudget& budget) {
  if (!budget.SpendText(text.size())) return "";
  const auto length = static_cast<int64_t>(CountCodePoints(text));
  const Steps steps = StepsOf(range, length);
  if (steps.count == 0) return "";
  if (steps.step == 1) {
    const size_t begin = OffsetOf(text, static_cast<size_t>(steps.start));
    const std::string_view rest = std::string_view(text).substr(begin);
    return rest.substr(0, OffsetOf(rest, steps.count));
  }
  std::vector<std::string_view> points;
  for (std::string_view rest = text; !rest.empty();) {
    points.push_back(rest.substr(0, FirstCodePoint(rest).length));
    rest.remove_prefix(points.back().size());
  }
  if (!budget.Spend(points.size())) return "";
  std::string out;
  for (uint64_t i = 0; i < steps.count; ++i) {
    out += points[static_cast<size_t>(steps.start + static_cast<int64_t>(i) * steps.step)];
  }
  return out;
}

TemplateValue SliceList(const TemplateSequence& list, const SliceRange& range,
                        RenderBudget& budget) {
  const Steps steps = StepsOf(range, static_cast<int64_t>(list.items.size()));
  TemplateList items;
  if (!budget.Spend(steps.count)) return items;
  items.reserve(steps.count);
  for (uint64_t i = 0; i < steps.count; ++i) {
    items.push_back(
        list.items[static_cast<size_t>(steps.start + static_cast<int64_t>(i) * steps.step)]);
  }
  const bool tuple = list.kind == SequenceKind::kTuple || list.kind == SequenceKind::kGroup;
  return {std::move(items), tuple ? SequenceKind::kTuple : list.kind};
}

bool IsView(SequenceKind kind) { return kind >= SequenceKind::kKeys; }

}  // namespace

Result<TemplateValue> TakeSlice(const TemplateValue& value, const SliceRange& range,
                                RenderBudget& budget) {
  if (range.step == 0) return Fail(Blame::kCaller, "a slice with steps of zero");
  if (const std::string* text = value.text()) {
    TemplateValue slice = SliceText(*text, range, budget);
    return value.is_markup() ? std::move(slice).AsMarkup() : std::move(slice);
  }
  const TemplateSequence* list = value.sequence();
  if (list != nullptr && !IsView(list->kind)) return SliceList(*list, range, budget);
  return Fail(Blame::kCaller, "{} has no slices", TypeName(value));
}

TemplateValue TakeIndex(const TemplateValue& value, int64_t index, RenderBudget& budget) {
  if (const TemplateSequence* list = value.sequence(); list != nullptr && !IsView(list->kind)) {
    const auto length = static_cast<int64_t>(list->items.size());
    const int64_t at = index < 0 ? index + length : index;
    return at >= 0 && at < length ? list->items[static_cast<size_t>(at)] : TemplateValue();
  }
  const std::string* text = value.text();
  if (text == nullptr || !budget.SpendText(text->size())) return {};
  const auto length = static_cast<int64_t>(CountCodePoints(*text));
  const int64_t at = index < 0 ? index + length : index;
  if (at < 0 || at >= length) return {};
  const std::string_view rest =
      std::string_view(*text).substr(OffsetOf(*text, static_cast<size_t>(at)));
  return rest.substr(0, FirstCodePoint(rest).length);
}

std::string_view TakeBytes(std::string_view text, std::optional<int64_t> start,
                           std::optional<int64_t> stop) {
  if (!start && !stop) return text;
  const auto length = static_cast<int64_t>(CountCodePoints(text));
  const int64_t begin = Clamp(start, 0, length, false);
  const int64_t end = Clamp(stop, length, length, false);
  if (end <= begin) return {};
  const std::string_view rest = text.substr(OffsetOf(text, static_cast<size_t>(begin)));
  return rest.substr(0, OffsetOf(rest, static_cast<size_t>(end - begin)));
}

}  // namespace fathom
