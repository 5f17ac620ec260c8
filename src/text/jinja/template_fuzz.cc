// Any bytes are a template, or refused; what is a template renders within its limits, or fails.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "codec/json.h"
#include "text/jinja/template.h"
#include "text/jinja/value.h"

namespace {

constexpr std::string_view kValues = R"({
  "messages": [{"role": "system", "content": " a\nb "}, {"role": "user", "content": "é 你\t"},
               {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f",
                "arguments": {"x": [1, 2.5, true, null, "q'\""]}}}]}],
  "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
  "s": "Hello World", "n": 5, "f": 2.5, "l": [3, 1, 2], "d": {"a": 1, "b": {"c": [1, 2]}},
  "add_generation_prompt": true, "bos_token": "<s>"})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  static const TemplateValue values = TemplateValue::Of(*Json::Parse(kValues));
  const Result<Template> parsed = Template::Parse({reinterpret_cast<const char*>(data), size});
  if (!parsed) return 0;
  constexpr RenderLimits kLimits{.output = 20'000, .steps = 20'000, .depth = 8};
  const Result<std::string> text = parsed->Render(*values.dict(), {.limits = kLimits, .now = 1});
  if (text && text->size() > kLimits.output) std::abort();
  if (!text && text.error().what.find('\n') != std::string::npos) std::abort();
  return 0;
}
