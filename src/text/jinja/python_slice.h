// Which items does value[start:stop:step] mean, and which does value[index]?
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "text/jinja/render_budget.h"
#include "text/jinja/value.h"

namespace fathom {

// Each missing one is as if it had not been written.
struct SliceRange {
  std::optional<int64_t> start;
  std::optional<int64_t> stop;
  std::optional<int64_t> step;
};

// Of texts (by code points) and sequences.
Result<TemplateValue> TakeSlice(const TemplateValue& value, const SliceRange& range,
                                RenderBudget& budget);
// Negative: from the end. Undefined if there is none, or if the value has no numbered items.
TemplateValue TakeIndex(const TemplateValue& value, int64_t index, RenderBudget& budget);

// The bytes of text[start:stop], as the arguments of find() and its like mean it.
std::string_view TakeBytes(std::string_view text, std::optional<int64_t> start,
                           std::optional<int64_t> stop);

}  // namespace fathom
