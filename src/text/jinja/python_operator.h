// What Python's operators make of these values.
//
// Errors  kCaller, naming the types; never the values.
#pragma once

#include <compare>
#include <cstdint>

#include "base/result.h"
#include "text/jinja/render_budget.h"
#include "text/jinja/syntax.h"
#include "text/jinja/value.h"

namespace fathom {

// How deep lists and dicts can be in each other.
constexpr uint32_t kMaxValueDepth = 1000;

bool Truth(const TemplateValue& value);
bool Equals(const TemplateValue& a, const TemplateValue& b, RenderBudget& budget);
// Only what Python can put in order: numbers, texts, lists.
Result<std::partial_ordering> Order(const TemplateValue& a, const TemplateValue& b,
                                    RenderBudget& budget);
Result<bool> Compare(Comparator comparator, const TemplateValue& a, const TemplateValue& b,
                     RenderBudget& budget);
Result<bool> Contains(const TemplateValue& container, const TemplateValue& item,
                      RenderBudget& budget);

Result<TemplateValue> Add(const TemplateValue& a, const TemplateValue& b, RenderBudget& budget);
Result<TemplateValue> Apply(BinaryOperator op, const TemplateValue& a, const TemplateValue& b,
                            RenderBudget& budget);
Result<TemplateValue> Negative(const TemplateValue& value);
Result<TemplateValue> Positive(const TemplateValue& value);

// Fails where Python does: beyond the largest float.
Result<TemplateValue> AsDouble(const LargeInteger& value);

// len(): texts in code points.
Result<int64_t> Length(const TemplateValue& value, RenderBudget& budget);
// Everything there is to iterate over, as a sequence. Uses an iterator up.
Result<TemplateValue> Items(const TemplateValue& value, RenderBudget& budget);
// The value, unless it nests too deeply.
Result<TemplateValue> Nested(TemplateValue value);

}  // namespace fathom
