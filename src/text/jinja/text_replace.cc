#include "text/jinja/text_replace.h"

#include "text/jinja/bounded_text.h"
#include "text/unicode/utf8.h"

namespace fathom {
namespace {

// The empty text is before each character and at the end.
TemplateValue Interleave(std::string_view text, std::string_view by, int64_t most,
                         RenderBudget& budget) {
  BoundedText out(budget);
  for (; most != 0 && out.open(); --most) {
    out.Add(by);
    if (text.empty()) break;
    const size_t length = FirstCodePoint(text).length;
    out.Add(text.substr(0, length));
    text.remove_prefix(length);
  }
  out.Add(text);
  return std::move(out).TakeValue();
}

}  // namespace

TemplateValue ReplaceText(std::string_view text, std::string_view old, std::string_view by,
                          int64_t most, RenderBudget& budget) {
  if (old.empty()) return Interleave(text, by, most, budget);
  BoundedText out(budget);
  for (; most != 0 && out.open(); --most) {
    const size_t found = text.find(old);
    if (found == std::string_view::npos) break;
    out.Add(text.substr(0, found));
    out.Add(by);
    text.remove_prefix(found + old.size());
  }
  out.Add(text);
  return std::move(out).TakeValue();
}

}  // namespace fathom
