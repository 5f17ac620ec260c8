// The few members of a request body that routing needs. The body itself is passed on untouched.
//
// Memory  Views lie in the body and are good as long as it is.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fathom {

// What a prompt is made of, as the client wrote it: valid JSON values, and empty where there is
// none (or null, which means the same to the engines).
struct PromptFields {
  std::string_view prompt;
  std::string_view messages;
  std::string_view tools;
  std::string_view chat_template;
  std::string_view chat_template_kwargs;
  std::string_view add_generation_prompt;
  std::string_view continue_final_message;
  std::string_view add_special_tokens;
  std::string_view mm_processor_kwargs;
  std::string_view media_io_kwargs;
  std::string_view documents;
  std::string_view reasoning_effort;
  std::string_view tool_choice;
};

// The same by name, for whoever handles them all alike.
struct PromptField {
  std::string_view name;
  std::string_view PromptFields::* value;
  bool asked = true;  // an engine's /tokenize takes it
};
constexpr std::array<PromptField, 13> kPromptFields = {{
    {"prompt", &PromptFields::prompt},
    {"messages", &PromptFields::messages},
    {"tools", &PromptFields::tools},
    {"chat_template", &PromptFields::chat_template},
    {"chat_template_kwargs", &PromptFields::chat_template_kwargs},
    {"add_generation_prompt", &PromptFields::add_generation_prompt},
    {"continue_final_message", &PromptFields::continue_final_message},
    {"add_special_tokens", &PromptFields::add_special_tokens},
    {"mm_processor_kwargs", &PromptFields::mm_processor_kwargs},
    {"media_io_kwargs", &PromptFields::media_io_kwargs},
    {"documents", &PromptFields::documents, false},
    {"reasoning_effort", &PromptFields::reasoning_effort, false},
    {"tool_choice", &PromptFields::tool_choice, false},
}};

struct RequestFields {
  std::string model;  // empty if the request names none
  bool stream = false;
  bool echo = false;      // the answer shall begin with the prompt
  bool truncate = false;  // the engine shall leave out the beginning of a long prompt
  // Asks for something that makes an engine count its cached tokens in another way: several
  // answers, or the probabilities of the prompt.
  bool counts_otherwise = false;
  PromptFields parts;
  // JSON values, or empty.
  std::string_view cache_salt;
  std::string_view stream_options;    // as it stands, also null
  std::string_view input_ids;         // a chat's tokens, for SGLang
  std::string_view prompt_token_ids;  // the same for TensorRT-LLM
};

size_t BytesOf(const PromptFields& parts);
// The same, on a text of their own, which is appended to `text`; `text` must have room for it.
PromptFields CopyOf(const PromptFields& parts, std::string& text);

// Checks that the body is one JSON object. Where a member is repeated the last one counts, as it
// does for the engines.
Result<RequestFields> ReadRequestFields(std::string_view body);

}  // namespace fathom
