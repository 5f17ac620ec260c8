// A chat as a client wrote it, and what a template sees of it.
//
// Engines prepare chats before the template gets them, and not all alike (model/chat_dialect.h):
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
#include "text/jinja/value.h"
#include "text/model/chat_dialect.h"
#include "text/model/inexact.h"

namespace fathom {

// The members of a request that reach the template: valid JSON values, empty where there is none
// (or null).
struct ChatFields {
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

// A member of a request, as engines read it.
Result<Json> ReadRequestJson(std::string_view text);

Result<PreparedChat> PrepareChat(const ChatFields& chat, const ChatPreparation& how);

}  // namespace fathom
