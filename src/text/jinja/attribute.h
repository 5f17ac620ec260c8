// What is value.name, and what is value[key]?
//
// As in jinja2: a dot asks for a method first and a member then, brackets the other way round. What
// is not there is undefined; only of undefined itself nothing can be asked.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/jinja/method.h"
#include "text/jinja/render_budget.h"
#include "text/jinja/value.h"

namespace fathom {

Result<TemplateValue> GetAttribute(const TemplateValue& value, const MethodName& name,
                                   RenderBudget& budget);
Result<TemplateValue> GetItem(const TemplateValue& value, const TemplateValue& key,
                              RenderBudget& budget);
// The same for a key that is known when the template is parsed.
Result<TemplateValue> GetNamedItem(const TemplateValue& value, const MethodName& key,
                                   RenderBudget& budget);
// A member of a dict or a namespace; nullptr if there is none.
const TemplateValue* FindNamed(const TemplateValue& value, std::string_view name,
                               RenderBudget& budget);

// The way to what a filter looks at: "function.name", "0", 3. Numbers among the names are indices.
class AttributePath {
 public:
  // An attribute of None leads nowhere: to the value itself.
  static Result<AttributePath> Parse(const TemplateValue& attribute);

  Result<TemplateValue> Follow(const TemplateValue& from, const TemplateValue* fallback,
                               RenderBudget& budget) const;

 private:
  TemplateList parts_;
};

}  // namespace fathom
