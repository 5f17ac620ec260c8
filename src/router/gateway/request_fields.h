// The few members of a request body that routing needs. The body itself is passed on unchanged.
//
// Memory  Views point into the body and are valid as long as it is.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/engine_kind.h"
#include "engine/model_name.h"

namespace fathom {

// The parts of a prompt as the client wrote them: valid JSON values; empty if missing or null,
// which engines treat alike.
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

// The same by name, for code that handles all of them alike.
struct PromptField {
  std::string_view name;
  std::string_view PromptFields::* value;
  // How an engine's /tokenize comes to know it. What the endpoint for chats ignores must not be
  // sent: SGLang's /tokenize honours add_generation_prompt, its chats do not.
  enum class Asked : uint8_t { kNot, kByName, kInTemplateArguments };
  Asked vllm = Asked::kByName;  // and engines that are not identified
  Asked sglang = Asked::kByName;

  Asked By(EngineKind engine) const { return engine == EngineKind::kSglang ? sglang : vllm; }
};
constexpr std::array<PromptField, 13> kPromptFields = {{
    {"prompt", &PromptFields::prompt},
    {"messages", &PromptFields::messages},
    {"tools", &PromptFields::tools},
    {"chat_template", &PromptFields::chat_template, PromptField::Asked::kByName,
     PromptField::Asked::kNot},
    {"chat_template_kwargs", &PromptFields::chat_template_kwargs},
    {"add_generation_prompt", &PromptFields::add_generation_prompt, PromptField::Asked::kByName,
     PromptField::Asked::kNot},
    {"continue_final_message", &PromptFields::continue_final_message},
    {"add_special_tokens", &PromptFields::add_special_tokens, PromptField::Asked::kByName,
     PromptField::Asked::kNot},
    {"mm_processor_kwargs", &PromptFields::mm_processor_kwargs, PromptField::Asked::kByName,
     PromptField::Asked::kNot},
    {"media_io_kwargs", &PromptFields::media_io_kwargs, PromptField::Asked::kByName,
     PromptField::Asked::kNot},
    {"documents", &PromptFields::documents, PromptField::Asked::kInTemplateArguments,
     PromptField::Asked::kNot},
    {"reasoning_effort", &PromptFields::reasoning_effort, PromptField::Asked::kInTemplateArguments},
    {"tool_choice", &PromptFields::tool_choice, PromptField::Asked::kNot},
}};

struct RequestFields {
  std::string model;  // empty if the request names none
  bool stream = false;
  bool echo = false;      // the answer must begin with the prompt
  bool truncate = false;  // the engine must drop the beginning of a long prompt
  // Requests several answers, or the probabilities of the prompt: an engine then counts its cached
  // tokens differently.
  bool counts_otherwise = false;
  PromptFields parts;
  // JSON values, or empty.
  std::string_view cache_salt;
  std::string_view stream_options;    // unchanged, also null
  std::string_view input_ids;         // a chat's token ids, for SGLang
  std::string_view prompt_token_ids;  // a chat's token ids, for TensorRT-LLM
  std::string_view model_problem;     // why the model's name cannot be used; or empty
  // The first member that steers a transfer of cache between engines; empty if there is none.
  std::string_view transfer_field;
};

size_t BytesOf(const PromptFields& parts);
// A copy whose values are appended to `text`; `text` must have enough capacity.
PromptFields CopyOf(const PromptFields& parts, std::string& text);

// Checks that the body is one JSON object. If a member is repeated, the last one counts, as in the
// engines.
Result<RequestFields> ReadRequestFields(std::string_view body);

}  // namespace fathom
