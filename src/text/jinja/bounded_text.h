// A text that grows as far as the budget allows, and then stays as it is.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "text/jinja/render_budget.h"
#include "text/jinja/value.h"

namespace fathom {

class BoundedText {
 public:
  explicit BoundedText(RenderBudget& budget) : budget_(budget) {}
  BoundedText(const BoundedText&) = delete;
  BoundedText& operator=(const BoundedText&) = delete;

  void Add(std::string_view text) {
    if (Fits(text.size())) text_ += text;
  }
  void Add(size_t times, char c) {
    if (Fits(times)) text_.append(times, c);
  }

  // false: whatever comes is thrown away, so that there is no point in going on.
  bool open() const { return !budget_.overdrawn(); }
  size_t size() const { return text_.size(); }
  RenderBudget& budget() { return budget_; }

  std::string Take() && {
    budget_.SpendText(text_.size());
    return std::move(text_);
  }
  TemplateValue TakeValue() && { return TemplateValue(std::move(*this).Take()); }

 private:
  bool Fits(size_t more) {
    const bool fits = more <= budget_.limits().output - text_.size();
    if (!fits) budget_.SpendText(budget_.limits().output + 1);
    return fits && open();
  }

  RenderBudget& budget_;
  std::string text_;
};

}  // namespace fathom
