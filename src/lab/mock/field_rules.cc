#include "lab/mock/field_rules.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace fathom {
namespace {

// A field is its name, the letter of its form, and ? where null may stand, ! where it must be
// there. The order is that of the engine's own description.
constexpr std::string_view kVllmCompletions =
    "model:t? prompt:p? echo:b? frequency_penalty:f? logit_bias:o? logprobs:i? max_tokens:i? n:i "
    "presence_penalty:f? seed:w? stop:s? stream:b? stream_options:u? suffix:t? temperature:f? "
    "top_p:f? user:t? use_beam_search:b top_k:i? min_p:f? repetition_penalty:f? watermarking:b? "
    "length_penalty:f stop_token_ids:I? include_stop_str_in_output:b ignore_eos:b min_tokens:i "
    "skip_special_tokens:b spaces_between_special_tokens:b truncate_prompt_tokens:w? "
    "allowed_token_ids:I? prompt_logprobs:i? "
    "logprob_token_ids:I? add_special_tokens:b priority:w request_id:t session_id:t? "
    "return_tokens_as_token_ids:b? return_token_ids:b? return_token_offsets:b? cache_salt:t? "
    "kv_transfer_params:o? ec_transfer_params:o? vllm_xargs:o?";
constexpr std::string_view kVllmChat =
    "messages:c! model:t? frequency_penalty:f? logit_bias:o? logprobs:b? top_logprobs:i? "
    "max_tokens:i? max_completion_tokens:i? n:i? presence_penalty:f? seed:w? stop:s? stream:b? "
    "stream_options:u? temperature:f? top_p:f? tools:k? include_reasoning:b parallel_tool_calls:b? "
    "user:t? use_beam_search:b top_k:i? min_p:f? repetition_penalty:f? watermarking:b? "
    "length_penalty:f stop_token_ids:I? include_stop_str_in_output:b ignore_eos:b min_tokens:i "
    "skip_special_tokens:b spaces_between_special_tokens:b truncate_prompt_tokens:w? "
    "prompt_logprobs:i? "
    "logprob_token_ids:I? allowed_token_ids:I? echo:b add_generation_prompt:b "
    "continue_final_message:b add_special_tokens:b documents:l? chat_template:t? "
    "chat_template_kwargs:o? media_io_kwargs:o? mm_processor_kwargs:o? priority:w request_id:t "
    "session_id:t? return_tokens_as_token_ids:b? return_token_ids:b? return_token_offsets:b? "
    "return_prompt_text:b? cache_salt:t? kv_transfer_params:o? ec_transfer_params:o? vllm_xargs:o?";
constexpr std::string_view kVllmResponses =
    "background:b? include:l? input:q! instructions:t? max_output_tokens:i? max_tool_calls:i? "
    "metadata:o? model:t? logit_bias:o? parallel_tool_calls:b? previous_response_id:t? "
    "reasoning:m? include_reasoning:b store:b? "
    "stream:b? temperature:f? text:m? tools:l top_p:f? top_k:i? min_p:f? user:t? "
    "skip_special_tokens:b "
    "include_stop_str_in_output:b presence_penalty:f? frequency_penalty:f? prompt_cache_key:t? "
    "request_id:t session_id:t? priority:w cache_salt:t? repetition_penalty:f? seed:w? stop:s? "
    "stop_token_ids:I? ignore_eos:b vllm_xargs:o? kv_transfer_params:o? ec_transfer_params:o? "
    "chat_template_kwargs:o?";
constexpr std::string_view kVllmMessages =
    "model:n! messages:d! max_tokens:+! metadata:o? thinking:m? stop_sequences:L? stream:b? "
    "system:P? temperature:f? tool_choice:m? tools:K? top_k:i? top_p:f? cache_salt:t? "
    "kv_transfer_params:o? "
    "ec_transfer_params:o? vllm_xargs:o? chat_template_kwargs:o?";
constexpr std::string_view kCountTokens =
    "model:n! messages:d! system:P? tool_choice:m? tools:K? chat_template_kwargs:o?";
constexpr std::string_view kVllmGenerate =
    "request_id:t token_ids:T! features:m? content_parts:l? sampling_params:m! model:t? "
    "return_token_ids:b? stream:b? stream_options:u? cache_salt:t? priority:w "
    "kv_transfer_params:o? ec_transfer_params:o?";
constexpr std::string_view kVllmDetokenize = "model:t? tokens:T!";

constexpr std::string_view kSglangCompletions =
    "model:t prompt:p! best_of:i? echo:b frequency_penalty:f logit_bias:o? logprobs:i? "
    "max_tokens:i n:i presence_penalty:f seed:i? stop:s? stream:b stream_options:u? suffix:t? "
    "temperature:f top_p:f user:t? return_token_ids:b top_k:i min_p:f min_tokens:i "
    "json_schema:t? regex:t? ebnf:t? repetition_penalty:f stop_token_ids:I? no_stop_trim:b "
    "ignore_eos:b skip_special_tokens:b session_id:t? session_params:o? custom_params:o? "
    "data_parallel_rank:i? priority:i?";
constexpr std::string_view kSglangChat =
    "messages:c! model:t frequency_penalty:f logit_bias:o? logprobs:b top_logprobs:i? "
    "max_tokens:i? "
    "max_completion_tokens:i? n:i presence_penalty:f seed:i? stop:s? stream:b stream_options:u? "
    "temperature:f? top_p:f? user:t? tools:k? parallel_tool_calls:b return_prompt_token_ids:b "
    "return_token_ids:b top_k:i? min_p:f? min_tokens:i regex:t? ebnf:t? repetition_penalty:f? "
    "stop_token_ids:I? no_stop_trim:b ignore_eos:b continue_final_message:b skip_special_tokens:b "
    "session_id:t? session_params:o? separate_reasoning:b stream_reasoning:b "
    "chat_template_kwargs:o? data_parallel_rank:i? priority:i?";
constexpr std::string_view kSglangMessages =
    "model:t! messages:d! max_tokens:i! metadata:o? stop_sequences:L? stream:b? system:P? "
    "temperature:f? tool_choice:m? tools:l? top_k:i? top_p:f?";
constexpr std::string_view kSglangResponses =
    "background:b? input:q! instructions:t? max_output_tokens:i? max_tool_calls:i? model:t? "
    "parallel_tool_calls:b? previous_response_id:t? store:b? stream:b? temperature:f? tools:l "
    "top_p:f? user:t?";
constexpr std::string_view kSglangGenerate =
    "stream:b rid:a return_logprob:a lora_path:a session_params:a priority:i? "
    "data_parallel_rank:i?";
constexpr std::string_view kSglangTokenize =
    "model:t prompt:s? messages:c? tools:k? continue_final_message:b chat_template_kwargs:o? "
    "add_special_tokens:b add_generation_prompt:b?";
constexpr std::string_view kSglangDetokenize = "model:t tokens:l! skip_special_tokens:b";

// TensorRT-LLM refuses what it does not know, so these are all of its fields, and one that is not
// its own: return_token_ids, by which tests of every engine see the tokens of a prompt.
constexpr std::string_view kTrtllmSampling =
    " best_of:i? echo:b? frequency_penalty:f? logit_bias:o? n:i presence_penalty:f? seed:i? "
    "stop:s? "
    "stream:b? stream_options:u? temperature:f? top_p:f? user:t? lora_request:m? "
    "prompt_ignore_length:i? use_beam_search:b top_k:i top_p_min:f min_p:f repetition_penalty:f "
    "length_penalty:f? early_stopping:a stop_token_ids:I? include_stop_str_in_output:b "
    "ignore_eos:b "
    "min_tokens:i skip_special_tokens:b spaces_between_special_tokens:b truncate_prompt_tokens:i? "
    "thinking_token_budget:i? add_special_tokens:b response_format:m? disaggregated_params:m? "
    "priority:f? conversation_params:m? cache_salt:t? return_token_ids:b? ";
constexpr std::string_view kTrtllmCompletions =
    "model:t! prompt:p! logprobs:i? max_tokens:i? suffix:t? return_context_logits:b detokenize:b";
constexpr std::string_view kTrtllmChat =
    "messages:c! prompt_token_ids:I? prompt_token_ids_b64:t? model:t! logprobs:b? top_logprobs:i? "
    "max_completion_tokens:i? max_tokens:i? tools:k? tool_choice:a parallel_tool_calls:b? "
    "reasoning_effort:a thinking:m? add_generation_prompt:b documents:l? chat_template:t? "
    "chat_template_kwargs:o? injected_chat_template_kwargs:l? media_io_kwargs:o? agent_hierarchy:a "
    "mm_processor_kwargs:o?";

constexpr std::string_view kTrtllmMessages =
    "model:t! messages:d! max_tokens:i! metadata:o? stop_sequences:L? stream:b? system:P? "
    "temperature:f? tool_choice:m? tools:l? top_k:i? top_p:f? thinking:m?";

FieldForm FormOfLetter(char letter) {
  static constexpr std::string_view kLetters = "atiwfbomlITsPpqcdkKun+";
  static constexpr std::array<FieldForm, kLetters.size()> kForms = {
      FieldForm::kAnything,    FieldForm::kText,     FieldForm::kInteger,    FieldForm::kWord64,
      FieldForm::kNumber,      FieldForm::kFlag,     FieldForm::kMap,        FieldForm::kRecord,
      FieldForm::kList,        FieldForm::kIntegers, FieldForm::kTokens,     FieldForm::kTexts,
      FieldForm::kTextOrParts, FieldForm::kPrompt,   FieldForm::kTextOrList, FieldForm::kChat,
      FieldForm::kDialogue,    FieldForm::kTools,    FieldForm::kSchemas,    FieldForm::kStream,
      FieldForm::kName,        FieldForm::kPositive};
  if (letter == 'L') return FieldForm::kList;
  const size_t at = kLetters.find(letter);
  CHECK(at != kLetters.npos);
  return kForms[at];
}

const FieldRules& NoRules() {
  static const FieldRules none({}, true);
  return none;
}

const FieldRules& VllmRules(MockRoute route) {
  static const FieldRules completions({kVllmCompletions}, true);
  static const FieldRules chat({kVllmChat}, true);
  static const FieldRules responses({kVllmResponses}, true);
  static const FieldRules messages({kVllmMessages}, true);
  static const FieldRules count({kCountTokens}, true);
  static const FieldRules detokenize({kVllmDetokenize}, true);
  static const FieldRules generate({kVllmGenerate}, true);
  switch (route) {
    case MockRoute::kCompletions:
      return completions;
    case MockRoute::kChat:
      return chat;
    case MockRoute::kResponses:
      return responses;
    case MockRoute::kMessages:
      return messages;
    case MockRoute::kCountTokens:
      return count;
    case MockRoute::kDetokenize:
      return detokenize;
    case MockRoute::kGenerate:
      return generate;
    case MockRoute::kTokenize:
    case MockRoute::kEmbeddings:
    case MockRoute::kOther:
      break;
  }
  return NoRules();
}

const FieldRules& SglangRules(MockRoute route) {
  static const FieldRules completions({kSglangCompletions}, true);
  static const FieldRules chat({kSglangChat}, true);
  static const FieldRules responses({kSglangResponses}, true);
  static const FieldRules messages({kSglangMessages}, true);
  static const FieldRules count({kCountTokens}, true);
  static const FieldRules tokenize({kSglangTokenize}, true);
  static const FieldRules generate({kSglangGenerate}, true);
  static const FieldRules detokenize({kSglangDetokenize}, true);
  switch (route) {
    case MockRoute::kCompletions:
      return completions;
    case MockRoute::kChat:
      return chat;
    case MockRoute::kResponses:
      return responses;
    case MockRoute::kMessages:
      return messages;
    case MockRoute::kCountTokens:
      return count;
    case MockRoute::kTokenize:
      return tokenize;
    case MockRoute::kDetokenize:
      return detokenize;
    case MockRoute::kGenerate:
      return generate;
    case MockRoute::kEmbeddings:
    case MockRoute::kOther:
      break;
  }
  return NoRules();
}

const FieldRules& TrtllmRules(MockRoute route) {
  static const FieldRules completions({kTrtllmCompletions, kTrtllmSampling}, false);
  static const FieldRules chat({kTrtllmChat, kTrtllmSampling}, false);
  static const FieldRules messages({kTrtllmMessages}, true);
  static const FieldRules count({kCountTokens}, true);
  switch (route) {
    case MockRoute::kCompletions:
      return completions;
    case MockRoute::kChat:
      return chat;
    case MockRoute::kMessages:
      return messages;
    case MockRoute::kCountTokens:
      return count;
    default:
      return NoRules();
  }
}

}  // namespace

FieldRules::FieldRules(std::initializer_list<std::string_view> lists, bool others)
    : others_(others) {
  for (const std::string_view list : lists) {
    for (size_t at = 0; at < list.size();) {
      const size_t end = std::min(list.find(' ', at), list.size());
      if (end > at) Add(list.substr(at, end - at));
      at = end + 1;
    }
  }
  for (size_t i = 0; i < fields_.size(); ++i) places_.emplace(fields_[i].name, i);
}

void FieldRules::Add(std::string_view text) {
  const size_t colon = text.find(':');
  const FieldForm form = FormOfLetter(text[colon + 1]);
  fields_.push_back({.name = text.substr(0, colon),
                     .form = form,
                     .null = text.ends_with('?') || form == FieldForm::kAnything,
                     .required = text.ends_with('!')});
}

std::optional<size_t> FieldRules::Find(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

const FieldRules& RulesFor(MockedEngine engine, MockRoute route) {
  switch (engine) {
    case MockedEngine::kVllm:
      return VllmRules(route);
    case MockedEngine::kSglang:
      return SglangRules(route);
    case MockedEngine::kTrtllm:
      return TrtllmRules(route);
  }
  return NoRules();
}

}  // namespace fathom
