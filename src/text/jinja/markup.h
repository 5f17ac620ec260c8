// What jinja2's Markup, which `safe` and `escape` make, does otherwise than a text.
//
// What is added to a markup is escaped, and the sum is one. Without automatic escaping nothing else
// of it shows: printing, `~`, tojson and join take it for a text. Where a result would need more of
// Markup than this, it is refused at render.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "text/jinja/filter.h"
#include "text/jinja/method.h"

namespace fathom {

// With entities in place of & < > ' ".
std::string Escaped(std::string_view text);

Result<TemplateValue> RunFilter(const Filter& filter, const TemplateValue& input,
                                const Arguments& arguments, RenderBudget& budget);
Result<TemplateValue> RunMethod(const Method& method, const TemplateValue& receiver,
                                const Arguments& arguments, RenderBudget& budget);

}  // namespace fathom
