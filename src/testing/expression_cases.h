// Expressions and their output, for tests that share one set of values.
#pragma once

#include <string>
#include <string_view>

#include "codec/json.h"
#include "text/jinja/template.h"
#include "text/jinja/value.h"

namespace fathom {

struct ExpressionCase {
  std::string_view expression;
  std::string_view printed;
};

// Control characters would be lost in a file, so they are written as JSON escapes.
constexpr std::string_view kCaseValues = R"({
  "s": "Hello World", "e": "", "u": "héllo ß 你好", "n": 5, "neg": -7, "f": 2.5, "t": true,
  "no": null, "l": [3, 1, 2], "ls": ["b", "A", "c"],
  "d": {"a": 1, "b": {"c": [1, 2]}, "items": "x"},
  "ld": [{"r": "u", "v": 2}, {"r": "A", "v": 1}, {"r": "u", "v": 3}, {"x": 1}],
  "deep": [[1, [2, "q'"]], {"k": null}], "big": 18446744073709551615,
  "multi": "a\nb\n\nc\r\nd", "ws": "  x y  z \t\n"})";

// The output of a template with these values; "refused: ..." or "error: ..." if it fails.
inline std::string Rendered(std::string_view source, const RenderOptions& options = {}) {
  const Result<Template> parsed = Template::Parse(source);
  if (!parsed) return "refused: " + parsed.error().what;
  const TemplateValue values = TemplateValue::Of(*Json::Parse(kCaseValues));
  Result<std::string> text = parsed->Render(*values.dict(), options);
  return text ? *std::move(text) : "error: " + text.error().what;
}

inline std::string Evaluated(std::string_view expression) {
  return Rendered("{{ " + std::string(expression) + " }}", {.now = 1'700'000'000});
}

}  // namespace fathom
