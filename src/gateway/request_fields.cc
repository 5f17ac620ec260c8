#include "gateway/request_fields.h"

#include "base/check.h"
#include "codec/json_scan.h"

namespace fathom {
namespace {

std::string_view UnlessNull(std::string_view value) {
  return value == "null" ? std::string_view() : value;
}

Result<void> ReadModel(std::string_view value, std::string& model) {
  model.clear();
  if (value == "null") return {};  // as good as none
  auto text = JsonText(value);
  if (!text) return Fail(Blame::kCaller, "'model' must be a string");
  model = *std::move(text);
  return {};
}

void ReadMember(const JsonScanner::Member& member, RequestFields& fields) {
  for (const PromptField& field : kPromptFields) {
    if (!JsonKeyIs(member.key, field.name)) continue;
    fields.parts.*field.value = UnlessNull(member.value);
    return;
  }
  if (JsonKeyIs(member.key, "stream")) {
    fields.stream = member.value == "true";
  } else if (JsonKeyIs(member.key, "echo")) {
    fields.echo = member.value == "true";
  } else if (JsonKeyIs(member.key, "truncate_prompt_tokens")) {
    fields.truncate = member.value != "null";
  } else if (JsonKeyIs(member.key, "n") || JsonKeyIs(member.key, "best_of")) {
    fields.counts_otherwise |= member.value != "1" && member.value != "null";
  } else if (JsonKeyIs(member.key, "prompt_logprobs")) {
    fields.counts_otherwise |= member.value != "null";
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
  }
}

}  // namespace

size_t BytesOf(const PromptFields& parts) {
  size_t bytes = 0;
  for (const PromptField& field : kPromptFields) bytes += (parts.*field.value).size();
  return bytes;
}

PromptFields CopyOf(const PromptFields& parts, std::string& text) {
  CHECK(text.capacity() - text.size() >= BytesOf(parts));
  PromptFields copy;
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
      TRY_VOID(ReadModel(member->value, fields.model));
    } else {
      ReadMember(*member, fields);
    }
  }
}

}  // namespace fathom
