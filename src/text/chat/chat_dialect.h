// What engines do differently when they prepare a chat for its template: the members of messages,
// tool calls and tools, and their order, which shows wherever a template prints JSON.
//
// From the sources of vLLM (renderers/), SGLang (entrypoints/openai/) and TensorRT-LLM (serve/), as
// of 2026; docs/design/0009 has the table.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "codec/json.h"
#include "text/jinja/value.h"

namespace fathom {

enum class ChatDialect : uint8_t { kVllm, kSglang, kTrtllm };

struct ChatRules {
  std::string_view separator;         // between texts of one content
  bool joins_empty_texts;             // an empty text has its separator, too
  bool plain_texts_only;              // parts with thoughts or refusals are left out
  bool wraps_text;                    // a text is a list of one part where the template loops
  bool joins_texts;                   // a list of nothing but texts is one text all the same
  bool no_tools_if_none;              // tool_choice "none" takes the tools away
  bool empty_tools_stay;              // as an empty list
  bool only_named_tool;               // tool_choice that names a tool takes the others away
  bool takes_generation_prompt;       // and continue_final_message and documents, as asked
  bool drops_empty_kwargs;            // template arguments that are null or "auto"
  bool kwargs_say_effort;             // reasoning_effort among them beats the request's own
  bool lowers_roles;                  // "User" is "user"
  bool final_assistant_becomes_user;  // and is continued only if that is asked for
  bool folds_developer;               // into "system", where the template does not know the word
  bool drops_billing_line;            // the first line of a system text, if it is Claude Code's
  std::string_view thinking_switch;   // set by reasoning_effort, beside enable_thinking

  // `role` and `content` are there already.
  Result<void> (*add_members)(const Json& message, std::string_view role, TemplateDict& out);
  TemplateValue (*tool)(const Json& tool);
};

const ChatRules& RulesOf(ChatDialect dialect);

}  // namespace fathom
