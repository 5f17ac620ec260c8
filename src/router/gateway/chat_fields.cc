#include "router/gateway/chat_fields.h"

namespace fathom {

ChatFields ChatOf(const PromptFields& fields) {
  return {.api = fields.api,
          .messages = fields.messages,
          .tools = fields.tools,
          .tool_choice = fields.tool_choice,
          .documents = fields.documents,
          .chat_template = fields.chat_template,
          .chat_template_kwargs = fields.chat_template_kwargs,
          .reasoning_effort = fields.reasoning_effort,
          .add_generation_prompt = fields.add_generation_prompt,
          .continue_final_message = fields.continue_final_message,
          .add_special_tokens = fields.add_special_tokens,
          .system = fields.system,
          .thinking = fields.thinking,
          .output_config = fields.output_config,
          .input = fields.input,
          .instructions = fields.instructions,
          .reasoning = fields.reasoning,
          .previous_response_id = fields.previous_response_id};
}

ChatDialect DialectOf(EngineKind engine) {
  switch (engine) {
    case EngineKind::kSglang:
      return ChatDialect::kSglang;
    case EngineKind::kTrtllm:
      return ChatDialect::kTrtllm;
    case EngineKind::kVllm:
    case EngineKind::kUnknown:
      break;
  }
  return ChatDialect::kVllm;
}

}  // namespace fathom
