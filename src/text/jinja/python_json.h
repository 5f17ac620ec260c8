// Values as json.dumps writes them.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "text/jinja/render_budget.h"
#include "text/jinja/value.h"

namespace fathom {

struct JsonStyle {
  bool ascii = false;
  std::optional<std::string> indent;  // of each level; missing: all on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};

// Errors  kCaller, for what JSON cannot say.
Result<TemplateValue> DumpJson(const TemplateValue& value, const JsonStyle& style,
                               RenderBudget& budget);

}  // namespace fathom
