#include "text/model/tokenizer_config.h"

#include <algorithm>
#include <array>

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

// transformers 5.23 takes tokenizer.json as it is for these, whatever class is named.
constexpr auto kBuiltFromFile = std::to_array<std::string_view>({"EvollaModel",
                                                                 "arctic",
                                                                 "aria",
                                                                 "chatlm",
                                                                 "ernie4_5",
                                                                 "ernie4_5_moe",
                                                                 "flex_olmo",
                                                                 "fuyu",
                                                                 "glm",
                                                                 "glm4",
                                                                 "glm4_moe",
                                                                 "glm4_moe_lite",
                                                                 "glm4v",
                                                                 "glm4v_moe",
                                                                 "got_ocr2",
                                                                 "gpt_bigcode",
                                                                 "granite",
                                                                 "granitemoe",
                                                                 "granitemoehybrid",
                                                                 "granitemoeshared",
                                                                 "h2ovl_chat",
                                                                 "hyperclovax",
                                                                 "hyperclovax_vlm",
                                                                 "internlm2",
                                                                 "internlm3",
                                                                 "iquestcoder",
                                                                 "jamba",
                                                                 "kimi_k25",
                                                                 "kimi_linear",
                                                                 "llava",
                                                                 "llava_next",
                                                                 "mimo_v2_flash",
                                                                 "minicpm3",
                                                                 "minicpmv",
                                                                 "minicpmv4_6",
                                                                 "minicpmv4_7",
                                                                 "minimax_m2",
                                                                 "ministral",
                                                                 "ministral3",
                                                                 "mistral",
                                                                 "mistral3",
                                                                 "mistral_large4",
                                                                 "mixtral",
                                                                 "molmo",
                                                                 "molmo2",
                                                                 "nemotron",
                                                                 "olmo2",
                                                                 "olmo3",
                                                                 "olmo_hybrid",
                                                                 "opencua",
                                                                 "openvla",
                                                                 "paddleocr_vl",
                                                                 "persimmon",
                                                                 "phi3",
                                                                 "phi3_v",
                                                                 "phimoe",
                                                                 "pixtral",
                                                                 "qwen2",
                                                                 "qwen3_5",
                                                                 "qwen3_5_moe",
                                                                 "qwen3_5_moe_text",
                                                                 "smolvlm",
                                                                 "stablelm",
                                                                 "step3_vl",
                                                                 "vipllava",
                                                                 "voxtral",
                                                                 "voxtral_realtime"});

std::optional<bool> Flag(const Json& json, std::string_view name) {
  const Json* const flag = json.Find(name);
  if (flag == nullptr || flag->boolean() == nullptr) return std::nullopt;
  return *flag->boolean();
}

void ReadClass(const Json& json, TokenizerConfig& config) {
  const Json* const name = json.Find("tokenizer_class");
  if (name != nullptr && name->string() != nullptr) config.tokenizer_class = *name->string();
  config.has_own_code = json.Find("auto_map") != nullptr;
  config.legacy = Flag(json, "legacy").value_or(false);
  config.adds_prefix_space = Flag(json, "add_prefix_space").value_or(true);
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
  ReadClass(json, config);
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

std::optional<LlamaPipeline> ClassPipeline(const TokenizerConfig& config,
                                           std::string_view model_type) {
  std::string_view name = config.tokenizer_class;
  if (name.ends_with("Fast")) name.remove_suffix(4);
  if (name != "LlamaTokenizer" || config.has_own_code) return std::nullopt;
  if (std::ranges::find(kBuiltFromFile, model_type) != kBuiltFromFile.end()) return std::nullopt;
  const std::string_view scheme = !config.adds_prefix_space ? "never"
                                  : config.legacy           ? "always"
                                                            : "first";
  return LlamaPipeline{std::string(scheme)};
}

Result<std::optional<TokenId>> ReadGenerationBos(std::string_view text) {
  TRY(const Json json, Json::ParseWithLargeNumbers(text));
  const Json* const bos = json.Find("bos_token_id");
  const auto id = bos != nullptr ? bos->unsigned_integer() : std::nullopt;
  if (!id || *id > Tokenizer::kMaxVocabulary) return std::nullopt;
  return static_cast<TokenId>(*id);
}

}  // namespace fathom
