#include "text/model/tokenizer_config.h"

#include <algorithm>

#include "base/text.h"
#include "codec/json.h"

namespace fathom {
namespace {

// A token is its text, or an object that has it.
const std::string* ContentOf(const Json& token) {
  if (token.string() != nullptr) return token.string();
  const Json* const content = token.Find("content");
  return content != nullptr ? content->string() : nullptr;
}

bool FlagOf(const Json& token, std::string_view name, bool fallback) {
  const Json* const flag = token.Find(name);
  return flag != nullptr && flag->boolean() != nullptr ? *flag->boolean() : fallback;
}

Result<void> ReadAdded(const Json& decoder, std::vector<AddedToken>& added) {
  if (decoder.object() == nullptr) return {};
  for (const auto& [id, token] : *decoder.object()) {
    const auto number = ParseDecimal(id);
    const std::string* const content = ContentOf(token);
    if (!number || *number > Tokenizer::kMaxVocabulary || content == nullptr) {
      return Fail(Blame::kCaller, "added_tokens_decoder: '{}' is not a token", id.substr(0, 40));
    }
    const bool special = FlagOf(token, "special", false);
    added.push_back({.id = static_cast<TokenId>(*number),
                     .content = *content,
                     .single_word = FlagOf(token, "single_word", false),
                     .lstrip = FlagOf(token, "lstrip", false),
                     .rstrip = FlagOf(token, "rstrip", false),
                     .normalized = FlagOf(token, "normalized", !special),
                     .special = special});
  }
  std::ranges::sort(added, {}, &AddedToken::id);
  return {};
}

// One text, or a list of {"name": ..., "template": ...}.
Result<void> ReadTemplates(const Json& chat_template, TokenizerConfig& config) {
  if (const std::string* const text = chat_template.string()) {
    config.templates.emplace_back("default", *text);
    return {};
  }
  if (chat_template.is_null()) return {};
  if (chat_template.array() == nullptr) return Fail(Blame::kCaller, "chat_template is not a text");
  for (const Json& entry : *chat_template.array()) {
    const Json* const name = entry.Find("name");
    const Json* const text = entry.Find("template");
    if (name == nullptr || text == nullptr || name->string() == nullptr ||
        text->string() == nullptr) {
      return Fail(Blame::kCaller, "chat_template: an entry without name and template");
    }
    config.templates.emplace_back(*name->string(), *text->string());
  }
  return {};
}

}  // namespace

Result<TokenizerConfig> ReadTokenizerConfig(std::string_view text) {
  TokenizerConfig config;
  TRY(const Json json, Json::ParseWithLargeNumbers(text));
  if (json.object() == nullptr) return Fail(Blame::kCaller, "is not a JSON object");
  config.says_bos = json.Find("bos_token") != nullptr;
  for (const auto& [name, value] : *json.object()) {
    if (name == "added_tokens_decoder") {
      TRY_VOID(ReadAdded(value, config.added));
    } else if (name == "chat_template") {
      TRY_VOID(ReadTemplates(value, config));
    } else if (name.ends_with("_token") && ContentOf(value) != nullptr) {
      config.roles.emplace_back(name, *ContentOf(value));
    }
  }
  return config;
}

Result<std::optional<TokenId>> ReadGenerationBos(std::string_view text) {
  TRY(const Json json, Json::ParseWithLargeNumbers(text));
  const Json* const bos = json.Find("bos_token_id");
  const auto id = bos != nullptr ? bos->unsigned_integer() : std::nullopt;
  if (!id || *id > Tokenizer::kMaxVocabulary) return std::nullopt;
  return static_cast<TokenId>(*id);
}

}  // namespace fathom
