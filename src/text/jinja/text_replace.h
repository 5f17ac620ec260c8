// A text with each occurrence of another one replaced.
#pragma once

#include <cstdint>
#include <string_view>

#include "text/jinja/render_budget.h"
#include "text/jinja/value.h"

namespace fathom {

// At most `most` of them; negative: all.
TemplateValue ReplaceText(std::string_view text, std::string_view old, std::string_view by,
                          int64_t most, RenderBudget& budget);

}  // namespace fathom
