// Values as Python prints them: str() and repr().
//
// Errors  kCaller, for what Python would print with an address.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "text/jinja/bounded_text.h"
#include "text/jinja/render_budget.h"
#include "text/jinja/value.h"

namespace fathom {

// "str", "int", "NoneType": for messages.
std::string_view TypeName(const TemplateValue& value);

// The shortest digits that are read as the same number again: 1.0, 1e+16, 0.0001, inf.
std::string FloatText(double value);

Result<> AppendStr(BoundedText& out, const TemplateValue& value);
Result<> AppendRepr(BoundedText& out, const TemplateValue& value);
// A text: the value itself where it is one already.
Result<TemplateValue> Str(const TemplateValue& value, RenderBudget& budget);

}  // namespace fathom
