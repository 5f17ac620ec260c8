// Prompts of all APIs: whatever they contain, some text is read, within the limits. A prompt that
// was read in full begins like itself with another message behind it.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "router/gateway/prompt_text.h"

using namespace fathom;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto engine = static_cast<EngineKind>(data[0] % 3);
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t cut = rest.find('\0');
  const std::string_view first = rest.substr(0, cut);
  const std::string_view second =
      cut == std::string_view::npos ? std::string_view() : rest.substr(cut + 1);
  PromptTextReader reader;
  std::vector<TokenId> values;
  for (const PromptFields& parts :
       {PromptFields{.messages = first, .tools = second},
        PromptFields{.messages = first, .system = second},
        PromptFields{.input = first, .instructions = second}, PromptFields{.prompt = first}}) {
    reader.Read(parts, engine, values);
    if (values.size() > PromptTextReader::kMostText / sizeof(TokenId)) std::abort();
  }
  const bool whole = reader.Read({.messages = first}, engine, values);
  if (!whole || !first.starts_with('[') || !first.ends_with("}]")) return 0;
  const std::string longer =
      std::string(first.substr(0, first.size() - 1)) + R"(,{"role":"user","content":"more"}])";
  std::vector<TokenId> more;
  reader.Read({.messages = longer}, engine, more);
  if (more.size() < values.size() || !std::equal(values.begin(), values.end(), more.begin())) {
    std::abort();
  }
  return 0;
}
