// Python's two ways to put values into a text: "%s" % value and "{}".format(value).
//
// Errors  kCaller; also for the parts of the format languages that are not supported.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/jinja/arguments.h"
#include "text/jinja/render_budget.h"
#include "text/jinja/value.h"

namespace fathom {

// `values` is a tuple, a dict for %(name)s, or the one value.
Result<TemplateValue> FormatPercent(std::string_view format, const TemplateValue& values,
                                    RenderBudget& budget);
Result<TemplateValue> FormatBraces(std::string_view format, const Arguments& arguments,
                                   RenderBudget& budget);

}  // namespace fathom
