// The few members of a request body that routing needs. The body itself is passed on unchanged.
//
// Memory  Views point into the body and are valid as long as it is.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/engine_kind.h"
#include "engine/model_name.h"
#include "text/chat/chat_request.h"

namespace fathom {

// The parts of a prompt as the client wrote them: valid JSON values; empty if missing or null,
// which engines treat alike.
struct PromptFields {
  PromptApi api = PromptApi::kChat;
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
  std::string_view system;
  std::string_view thinking;
  std::string_view output_config;
  std::string_view input;
  std::string_view instructions;
  std::string_view reasoning;
  std::string_view previous_response_id;
};

// The APIs whose prompts have a member, as bits.
using PromptApis = uint8_t;
constexpr PromptApis kInCompletions = 1;
constexpr PromptApis kInChats = 2;
constexpr PromptApis kInMessages = 4;
constexpr PromptApis kInResponses = 8;
constexpr PromptApis kInAgents = kInMessages | kInResponses;

// The same by name, for code that handles all of them alike.
struct PromptField {
  std::string_view name;
  std::string_view PromptFields::* value;
  PromptApis apis = kInChats;
  // How an engine's /tokenize comes to know it. What the endpoint for chats ignores must not be
  // sent: SGLang's /tokenize honours add_generation_prompt, its chats do not.
  enum class Asked : uint8_t { kNot, kByName, kInTemplateArguments };
  Asked vllm = Asked::kByName;  // and engines that are not identified
  Asked sglang = Asked::kByName;

  Asked By(EngineKind engine) const { return engine == EngineKind::kSglang ? sglang : vllm; }
};
constexpr std::array<PromptField, 20> kPromptFields = {{
    {"prompt", &PromptFields::prompt, kInCompletions},
    {"messages", &PromptFields::messages, kInChats | kInMessages},
    {"tools", &PromptFields::tools, kInChats | kInAgents},
    {"chat_template", &PromptFields::chat_template, kInChats, PromptField::Asked::kByName,
     PromptField::Asked::kNot},
    {"chat_template_kwargs", &PromptFields::chat_template_kwargs, kInChats | kInAgents},
    {"add_generation_prompt", &PromptFields::add_generation_prompt, kInChats,
     PromptField::Asked::kByName, PromptField::Asked::kNot},
    {"continue_final_message", &PromptFields::continue_final_message, kInChats},
    {"add_special_tokens", &PromptFields::add_special_tokens, kInChats | kInCompletions,
     PromptField::Asked::kByName, PromptField::Asked::kNot},
    {"mm_processor_kwargs", &PromptFields::mm_processor_kwargs, kInChats | kInResponses,
     PromptField::Asked::kByName, PromptField::Asked::kNot},
    {"media_io_kwargs", &PromptFields::media_io_kwargs, kInChats | kInResponses,
     PromptField::Asked::kByName, PromptField::Asked::kNot},
    {"documents", &PromptFields::documents, kInChats, PromptField::Asked::kInTemplateArguments,
     PromptField::Asked::kNot},
    {"reasoning_effort", &PromptFields::reasoning_effort, kInChats,
     PromptField::Asked::kInTemplateArguments},
    {"tool_choice", &PromptFields::tool_choice, kInChats | kInAgents, PromptField::Asked::kNot},
    {"system", &PromptFields::system, kInMessages},
    {"thinking", &PromptFields::thinking, kInMessages},
    {"output_config", &PromptFields::output_config, kInMessages},
    {"input", &PromptFields::input, kInResponses},
    {"instructions", &PromptFields::instructions, kInResponses},
    {"reasoning", &PromptFields::reasoning, kInResponses},
    {"previous_response_id", &PromptFields::previous_response_id, kInResponses},
}};

struct RequestFields {
  std::string model;  // empty if the request names none
  bool stream = false;
  bool store = true;      // the engine may keep the answer, to be continued
  bool echo = false;      // the answer must begin with the prompt
  bool truncate = false;  // the engine must drop the beginning of a long prompt
  // Requests several answers, or the probabilities of the prompt: an engine then counts its cached
  // tokens differently.
  bool counts_otherwise = false;
  bool media = false;  // the prompt of /generate, or of vLLM's, is more than its text or ids
  PromptFields parts;
  // JSON values, or empty.
  std::string_view cache_salt;
  std::string_view stream_options;    // unchanged, also null
  std::string_view input_ids;         // of a chat or of /generate, for SGLang
  std::string_view text;              // of /generate
  std::string_view token_ids;         // of vLLM's /inference/v1/generate
  std::string_view lora_path;         // of /generate: the adapter
  std::string_view prompt_token_ids;  // a chat's token ids, for TensorRT-LLM
  // Hints about the session (router/gateway/hint_of_request.h).
  std::string_view prompt_cache_key;
  std::string_view metadata;
  std::string_view safety_identifier;
  std::string_view user;
  std::string_view model_problem;  // why the model's name cannot be used; or empty
  // The first member that steers a transfer of cache between engines; empty if there is none.
  std::string_view transfer_field;
};

// The members that determine the prompt of a request to one of these APIs.
PromptFields PartsOf(const PromptFields& all, PromptApis apis);

// The API whose requests look like this one; nothing if it has no prompt. Messages and chats share
// the member of that name, and differ in what stands beside it and inside.
std::optional<PromptApis> LikelyApi(const PromptFields& all);

size_t BytesOf(const PromptFields& parts);
// A copy whose values are appended to `text`; `text` must have enough capacity.
PromptFields CopyOf(const PromptFields& parts, std::string& text);

// Checks that the body is one JSON object. If a member is repeated, the last one counts, as in the
// engines.
Result<RequestFields> ReadRequestFields(std::string_view body);

}  // namespace fathom
