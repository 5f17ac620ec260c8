// A chat as a client wrote it, as an engine reads it, and what a template sees of it.
//
// Engines prepare chats before the template gets them, and not all alike (chat/chat_dialect.h):
// which fields of a message are kept, how texts in parts are joined, what a missing content
// becomes. The same preparation here gives the same prompt.
//
// Errors  kCaller: what is no chat at all. The engine will say so to the client.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "codec/json.h"
#include "text/chat/chat_dialect.h"
#include "text/chat/inexact.h"
#include "text/jinja/value.h"

namespace fathom {

// Whose form does a request have?
enum class PromptApi : uint8_t { kChat, kMessages, kResponses };

// The members of a request that reach the template: valid JSON values, empty where there is none
// (or null).
struct ChatFields {
  PromptApi api = PromptApi::kChat;
  std::string_view messages;
  std::string_view tools;
  std::string_view tool_choice;
  std::string_view documents;
  std::string_view chat_template;
  std::string_view chat_template_kwargs;
  std::string_view reasoning_effort;
  std::string_view add_generation_prompt;
  std::string_view continue_final_message;
  std::string_view add_special_tokens;
  // Of /v1/messages.
  std::string_view system;
  std::string_view thinking;
  std::string_view output_config;
  // Of /v1/responses.
  std::string_view input;
  std::string_view instructions;
  std::string_view reasoning;
  std::string_view previous_response_id;
};

// The same chat, read: in the form of /v1/chat/completions, whichever API it came by.
struct ChatSource {
  Json::Array messages;
  std::optional<Json::Array> tools;
  Json tool_choice;
  Json documents;
  Json reasoning_effort;
  Json::Object kwargs;                        // for the template
  std::optional<bool> add_generation_prompt;  // unless the client leaves it to the engine
  bool continue_final_message = false;
  bool effort_is_switch = true;  // reasoning_effort also decides whether to think
};

// Stands where something is that cannot be told in tokens. A noncharacter: what comes before it in
// the rendered prompt is exact.
constexpr std::string_view kUnknownMark = "\xef\xb7\x91";  // U+FDD1

// Changes texts before the template sees them.
class TextFilter {
 public:
  virtual ~TextFilter() = default;
  // `from_outside`: a user or a tool has written it.
  virtual std::string Apply(std::string text, bool from_outside) const = 0;
};

struct ChatPreparation {
  ChatDialect dialect = ChatDialect::kVllm;
  bool content_in_parts = false;       // the template loops over the parts of a content
  bool knows_developer = false;        // the template knows the role of that name
  const TextFilter* filter = nullptr;  // of contents; null: they stay as they are
};

struct PreparedChat {
  TemplateList messages;
  TemplateValue tools = nullptr;   // a list, or none
  std::string beginning;           // of the answer, to be put behind the prompt
  std::optional<Inexact> inexact;  // what the first part is that is no text
  // Where messages have such parts: the same with the kind of each in its place, and no mark.
  std::optional<TemplateList> as_is;
};

// A member of a request, as engines read it. Null if there is none.
Result<Json> ReadRequestJson(std::string_view text);
Result<Json::Array> ReadRequestList(std::string_view text, std::string_view name);
// Template arguments; refused if there are more than a template can have a use for.
Result<Json::Object> ReadKwargs(std::string_view text);

// A request to /v1/chat/completions.
Result<ChatSource> ReadChat(const ChatFields& chat);

Result<PreparedChat> PrepareChat(const ChatSource& chat, const ChatPreparation& how);

}  // namespace fathom
