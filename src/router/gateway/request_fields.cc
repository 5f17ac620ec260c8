#include "router/gateway/request_fields.h"

#include <fmt/format.h>

#include "base/check.h"
#include "codec/json_scan.h"

namespace fathom {
namespace {

std::string_view UnlessNull(std::string_view value) {
  return value == "null" ? std::string_view() : value;
}

// A byte is written with at most six: \u0041.
void ReadModel(std::string_view value, RequestFields& fields) {
  constexpr size_t kLongestWritten = 6 * kLongestModel + 2;
  fields.model.clear();
  fields.model_problem = {};
  if (value == "null") return;  // the same as missing
  auto text = value.size() <= kLongestWritten ? JsonText(value) : std::nullopt;
  if (!value.starts_with('"') || (!text && value.size() <= kLongestWritten)) {
    fields.model_problem = "'model' must be a string";
  } else if (!text || text->size() > kLongestModel) {
    static const std::string kTooLong =
        fmt::format("'model' must have at most {} bytes", kLongestModel);
    fields.model_problem = kTooLong;
  } else {
    fields.model = *std::move(text);
  }
}

// By how an engine counts its cached tokens. Members of a body, or of its sampling_params.
bool ReadCounting(const JsonScanner::Member& member, RequestFields& fields) {
  if (JsonKeyIs(member.key, "n") || JsonKeyIs(member.key, "best_of")) {
    fields.counts_otherwise |= member.value != "1" && member.value != "null";
  } else if (JsonKeyIs(member.key, "prompt_logprobs")) {
    fields.counts_otherwise |= member.value != "null";
  } else if (JsonKeyIs(member.key, "truncate_prompt_tokens")) {
    fields.truncate = member.value != "null";
  } else {
    return false;
  }
  return true;
}

// Members of the engines' own routes for generation.
bool ReadGenerateMember(const JsonScanner::Member& member, RequestFields& fields) {
  static constexpr std::string_view kMedia[] = {"image_data", "video_data",    "audio_data",
                                                "features",   "content_parts", "input_embeds"};
  if (JsonKeyIs(member.key, "text")) {
    fields.text = UnlessNull(member.value);
  } else if (JsonKeyIs(member.key, "token_ids")) {
    fields.token_ids = UnlessNull(member.value);
  } else if (JsonKeyIs(member.key, "lora_path")) {
    fields.lora_path = UnlessNull(member.value);
  } else if (JsonKeyIs(member.key, "return_logprob")) {
    fields.counts_otherwise |= member.value == "true";
  } else if (JsonKeyIs(member.key, "sampling_params")) {
    JsonScanner inner(member.value);
    for (auto one = inner.Next(); one && *one; one = inner.Next()) ReadCounting(**one, fields);
  } else {
    for (const std::string_view name : kMedia) {
      fields.media |= member.value != "null" && JsonKeyIs(member.key, name);
    }
    return false;
  }
  return true;
}

void ReadMember(const JsonScanner::Member& member, RequestFields& fields) {
  for (const PromptField& field : kPromptFields) {
    if (!JsonKeyIs(member.key, field.name)) continue;
    fields.parts.*field.value = UnlessNull(member.value);
    return;
  }
  if (JsonKeyIs(member.key, "stream")) {
    fields.stream = member.value == "true";
  } else if (JsonKeyIs(member.key, "store")) {
    fields.store = member.value != "false";
  } else if (JsonKeyIs(member.key, "echo")) {
    fields.echo = member.value == "true";
  } else if (ReadCounting(member, fields) || ReadGenerateMember(member, fields)) {
    return;
  } else if (JsonKeyIs(member.key, "use_beam_search")) {
    fields.counts_otherwise |= member.value == "true";
  } else if (JsonKeyIs(member.key, "cache_salt")) {
    fields.cache_salt = UnlessNull(member.value);
  } else if (JsonKeyIs(member.key, "stream_options")) {
    fields.stream_options = member.value;
  } else if (JsonKeyIs(member.key, "input_ids")) {
    fields.input_ids = UnlessNull(member.value);
  } else if (JsonKeyIs(member.key, "prompt_token_ids")) {
    fields.prompt_token_ids = UnlessNull(member.value);
  } else if (JsonKeyIs(member.key, "prompt_cache_key")) {
    fields.prompt_cache_key = member.value;
  } else if (JsonKeyIs(member.key, "metadata")) {
    fields.metadata = member.value;
  } else if (JsonKeyIs(member.key, "safety_identifier")) {
    fields.safety_identifier = member.value;
  } else if (JsonKeyIs(member.key, "user")) {
    fields.user = member.value;
  }
}

constexpr std::string_view kTransferMembers[] = {"kv_transfer_params", "disaggregated_params"};
constexpr std::string_view kBootstrap = "bootstrap_";
constexpr size_t kLongestName = 64;  // of a client's own, in an error
// Objects from which vLLM takes arguments of the same names: sampling_params.extra_args.
constexpr std::string_view kNests[] = {"vllm_xargs", "sampling_params", "extra_args"};
constexpr int kDeepestNest = 2;

std::string_view TransferFieldIn(std::string_view object, int depth);

// The name, if this member steers a transfer. To SGLang, a bootstrap port of null is not a missing
// one.
std::string_view TransferFieldOf(const JsonScanner::Member& member, int depth) {
  if (JsonKeyStartsWith(member.key, kBootstrap)) {
    const bool plain = member.key.size() <= kLongestName && member.key.starts_with(kBootstrap);
    return plain ? member.key : kBootstrap;
  }
  for (const std::string_view name : kTransferMembers) {
    if (member.value != "null" && JsonKeyIs(member.key, name)) return name;
  }
  for (const std::string_view name : kNests) {
    if (depth < kDeepestNest && JsonKeyIs(member.key, name)) {
      return TransferFieldIn(member.value, depth + 1);
    }
  }
  return {};
}

std::string_view TransferFieldIn(std::string_view object, int depth) {
  JsonScanner members(object);
  for (;;) {
    const auto member = members.Next();
    if (!member || !*member) return {};
    if (const auto name = TransferFieldOf(**member, depth); !name.empty()) return name;
  }
}

}  // namespace

PromptFields PartsOf(const PromptFields& all, PromptApis apis) {
  PromptFields parts;
  if (apis == kInMessages) parts.api = PromptApi::kMessages;
  if (apis == kInResponses) parts.api = PromptApi::kResponses;
  for (const PromptField& field : kPromptFields) {
    if ((field.apis & apis) != 0) parts.*field.value = all.*field.value;
  }
  return parts;
}

std::optional<PromptApis> LikelyApi(const PromptFields& all) {
  if (!all.prompt.empty()) return kInCompletions;
  if (all.messages.empty()) return all.input.empty() ? std::nullopt : std::optional(kInResponses);
  const bool inside = all.tools.contains(R"("input_schema")") ||
                      all.messages.contains(R"("tool_use")") ||
                      all.messages.contains(R"("tool_result")");
  const bool beside = !all.system.empty() || !all.thinking.empty() || !all.output_config.empty();
  return inside || beside ? kInMessages : kInChats;
}

size_t BytesOf(const PromptFields& parts) {
  size_t bytes = 0;
  for (const PromptField& field : kPromptFields) bytes += (parts.*field.value).size();
  return bytes;
}

PromptFields CopyOf(const PromptFields& parts, std::string& text) {
  CHECK(text.capacity() - text.size() >= BytesOf(parts));
  PromptFields copy;
  copy.api = parts.api;
  for (const PromptField& field : kPromptFields) {
    const std::string_view part = parts.*field.value;
    text += part;
    copy.*field.value = std::string_view(text).substr(text.size() - part.size());
  }
  return copy;
}

Result<RequestFields> ReadRequestFields(std::string_view body) {
  RequestFields fields;
  JsonScanner scanner(body);
  for (;;) {
    TRY(const auto member, scanner.Next());
    if (!member) return fields;
    if (JsonKeyIs(member->key, "model")) {
      ReadModel(member->value, fields);
    } else {
      ReadMember(*member, fields);
      if (fields.transfer_field.empty()) fields.transfer_field = TransferFieldOf(*member, 0);
    }
  }
}

}  // namespace fathom
