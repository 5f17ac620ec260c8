#include "router/gateway/token_body.h"

#include "base/check.h"
#include "base/text_builder.h"

namespace fathom {
namespace {

void AppendIds(std::string& out, std::span<const TokenId> tokens) {
  out += '[';
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) out += ',';
    out += Decimal(tokens[i]).text();
  }
  out += ']';
}

std::string_view ChatMember(EngineKind engine) {
  switch (engine) {
    case EngineKind::kSglang:
      return "input_ids";
    case EngineKind::kTrtllm:
      return "prompt_token_ids";
    case EngineKind::kVllm:
    case EngineKind::kUnknown:
      break;
  }
  return {};
}

}  // namespace

bool TakesTokenIds(EngineKind engine, Route route, const RequestFields& fields) {
  if (engine == EngineKind::kUnknown) return false;
  if (route == Route::kCompletions) {
    // Several prompts are several requests; engines echo ids differently from text.
    return fields.parts.prompt.starts_with('"') && !fields.echo;
  }
  if (route != Route::kChat || ChatMember(engine).empty()) return false;
  if (!fields.input_ids.empty() || !fields.prompt_token_ids.empty()) return false;
  // With a named tool, TensorRT-LLM puts the beginning of the answer into the prompt.
  return engine != EngineKind::kTrtllm || !fields.parts.tool_choice.starts_with('{');
}

std::string WithTokenIds(std::string_view body, const RequestFields& fields, Route route,
                         EngineKind engine, std::span<const TokenId> tokens) {
  constexpr size_t kDigits = 7;
  std::string out;
  out.reserve(body.size() + tokens.size() * kDigits + 32);
  if (route == Route::kCompletions) {
    const std::string_view prompt = fields.parts.prompt;
    const auto at = static_cast<size_t>(prompt.data() - body.data());
    CHECK(at + prompt.size() <= body.size());
    out += body.substr(0, at);
    AppendIds(out, tokens);
    out += body.substr(at + prompt.size());
    return out;
  }
  // After the opening brace of the object, which is known to have members.
  const size_t open = body.find('{') + 1;
  out.append(body.substr(0, open)).append("\"").append(ChatMember(engine)).append("\":");
  AppendIds(out, tokens);
  out.append(",").append(body.substr(open));
  return out;
}

}  // namespace fathom
