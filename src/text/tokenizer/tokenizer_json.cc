#include "text/tokenizer/tokenizer_json.h"

#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "codec/json_scan.h"
#include "text/tokenizer/part_json.h"
#include "text/unicode/utf8.h"

namespace fathom {
namespace {

// Of a token in the vocabulary, and of an added one.
constexpr size_t kLongestToken = size_t{64} << 10;
constexpr size_t kMostAddedTokens = size_t{1} << 20;
static_assert(Tokenizer::kMaxVocabulary <= MergeTable::kMaxTokens);

Result<std::string> TextOf(std::string_view raw, std::string_view what) {
  std::optional<std::string> text = JsonText(raw);
  if (!text) return Fail(Blame::kCaller, "{} is not a text", what);
  if (text->size() > kLongestToken) return Fail(Blame::kCaller, "{} is too long", what);
  return *std::move(text);
}

// A key with the quotes around it, which stand in the document.
std::string_view Quoted(std::string_view key) { return {key.data() - 1, key.size() + 2}; }

Result<TokenId> IdOf(std::string_view raw) {
  TokenId id = 0;
  const auto [end, error] = std::from_chars(raw.data(), raw.data() + raw.size(), id);
  if (error != std::errc() || end != raw.data() + raw.size() || id >= Tokenizer::kMaxVocabulary) {
    return Fail(Blame::kCaller, "the id of a token is not between 0 and {}",
                Tokenizer::kMaxVocabulary);
  }
  return id;
}

Result<Vocabulary> ReadVocabulary(std::string_view raw) {
  Vocabulary vocabulary;
  JsonScanner scanner(raw);
  for (;;) {
    TRY(const std::optional<JsonScanner::Member> member, scanner.Next());
    if (!member) return vocabulary;
    TRY(const std::string text, TextOf(Quoted(member->key), "a token of the vocabulary"));
    TRY(const TokenId id, IdOf(member->value));
    if (!vocabulary.Add(id, text)) {
      return Fail(Blame::kCaller, "the vocabulary has token {} or its text twice", id);
    }
  }
}

struct TextPair {
  std::string left;
  std::string right;
};

// "a b", or ["a", "b"]
Result<TextPair> ReadPair(std::string_view raw) {
  if (!raw.starts_with('[')) {
    TRY(const std::string both, TextOf(raw, "a merge"));
    const size_t space = both.find(' ');
    if (space == both.npos || both.find(' ', space + 1) != both.npos) {
      return Fail(Blame::kCaller, "a merge is not two texts");
    }
    return TextPair{both.substr(0, space), both.substr(space + 1)};
  }
  JsonElements elements(raw);
  const std::optional<std::string_view> left = elements.Next();
  const std::optional<std::string_view> right = elements.Next();
  if (!left || !right || elements.Next()) return Fail(Blame::kCaller, "a merge is not two texts");
  TextPair pair;
  TRY(pair.left, TextOf(*left, "a merge"));
  TRY(pair.right, TextOf(*right, "a merge"));
  return pair;
}

Result<std::vector<MergeRule>> ReadMerges(std::string_view raw, const Vocabulary& vocabulary) {
  std::vector<MergeRule> merges;
  if (!raw.starts_with('[')) return Fail(Blame::kCaller, "the merges are not a list");
  JsonElements elements(raw);
  while (const std::optional<std::string_view> element = elements.Next()) {
    if (merges.size() == MergeTable::kMaxMerges)
      return Fail(Blame::kCaller, "there are too many merges");
    TRY(const TextPair pair, ReadPair(*element));
    const MergeRule rule{vocabulary.Find(pair.left), vocabulary.Find(pair.right),
                         vocabulary.Find(pair.left + pair.right)};
    if (rule.left == Vocabulary::kNone || rule.right == Vocabulary::kNone ||
        rule.token == Vocabulary::kNone) {
      return Fail(Blame::kCaller, "merge {} has a text that is not in the vocabulary",
                  merges.size());
    }
    merges.push_back(rule);
  }
  return merges;
}

// What the model says about itself, besides the two long lists.
struct ModelParts {
  std::string_view vocabulary;
  std::string_view merges;
  Json settings = Json(Json::Object());
};

// Everything but the long lists as one tree of its own.
Result<ModelParts> ReadModelParts(std::string_view raw) {
  ModelParts parts;
  Json::Object settings;
  JsonScanner scanner(raw);
  for (;;) {
    TRY(const std::optional<JsonScanner::Member> member, scanner.Next());
    if (!member) break;
    if (JsonKeyIs(member->key, "vocab")) {
      parts.vocabulary = member->value;
    } else if (JsonKeyIs(member->key, "merges")) {
      parts.merges = member->value;
    } else {
      TRY(Json value, Json::Parse(member->value));
      settings.emplace_back(member->key, std::move(value));
    }
  }
  parts.settings = Json(std::move(settings));
  return parts;
}

// What changes the tokens and is not done here must be absent, null, or nothing.
Result<void> RefuseSettings(const Json& settings) {
  const Json* type = settings.Find("type");
  if (type != nullptr && (type->string() == nullptr || *type->string() != "BPE")) {
    return Fail(Blame::kCaller, "not supported: model {}",
                type->string() == nullptr ? "of no type" : *type->string());
  }
  const Json* dropout = settings.Find("dropout");
  if (dropout != nullptr && !dropout->is_null() && dropout->number() != 0.0) {
    return Fail(Blame::kCaller, "not supported: dropout");
  }
  for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const Json* text = settings.Find(key);
    const bool nothing = text == nullptr || text->is_null() ||
                         (text->string() != nullptr && text->string()->empty());
    if (!nothing) return Fail(Blame::kCaller, "not supported: {}", key);
  }
  return {};
}

Result<BpeRules> ReadModel(std::string_view raw) {
  TRY(const ModelParts parts, ReadModelParts(raw));
  TRY_VOID(RefuseSettings(parts.settings));
  if (parts.vocabulary.empty() || parts.merges.empty()) {
    return Fail(Blame::kCaller, "the model has no vocabulary or no merges");
  }
  BpeRules rules;
  TRY(rules.fuse_unknown, PartFlag(parts.settings, "fuse_unk", false));
  TRY(rules.byte_fallback, PartFlag(parts.settings, "byte_fallback", false));
  TRY(rules.ignore_merges, PartFlag(parts.settings, "ignore_merges", false));
  TRY(rules.vocabulary, ReadVocabulary(parts.vocabulary));
  TRY(rules.merges, ReadMerges(parts.merges, rules.vocabulary));
  const Json* unknown = parts.settings.Find("unk_token");
  if (unknown == nullptr || unknown->is_null()) return rules;
  TRY(const std::string text, PartText(parts.settings, "unk_token"));
  rules.unknown = rules.vocabulary.Find(text);
  if (rules.unknown == Vocabulary::kNone) {
    return Fail(Blame::kCaller, "the vocabulary does not have the unk_token");
  }
  return rules;
}

Result<AddedToken> ReadAddedToken(std::string_view raw) {
  TRY(const Json json, Json::Parse(raw));
  AddedToken token;
  TRY(token.content, PartText(json, "content"));
  if (token.content.size() > kLongestToken)
    return Fail(Blame::kCaller, "an added token is too long");
  const Json* id = json.Find("id");
  const std::optional<uint64_t> number = id == nullptr ? std::nullopt : id->unsigned_integer();
  if (!number || *number >= Tokenizer::kMaxVocabulary) {
    return Fail(Blame::kCaller, "the id of an added token is not between 0 and {}",
                Tokenizer::kMaxVocabulary);
  }
  token.id = static_cast<TokenId>(*number);
  TRY(token.single_word, PartFlag(json, "single_word", false));
  TRY(token.lstrip, PartFlag(json, "lstrip", false));
  TRY(token.rstrip, PartFlag(json, "rstrip", false));
  TRY(token.special, PartFlag(json, "special", false));
  TRY(token.normalized, PartFlag(json, "normalized", !token.special));
  return token;
}

Result<std::vector<AddedToken>> ReadAddedTokens(std::string_view raw) {
  std::vector<AddedToken> tokens;
  if (raw == "null") return tokens;
  if (!raw.starts_with('[')) return Fail(Blame::kCaller, "added_tokens is not a list");
  JsonElements elements(raw);
  while (const std::optional<std::string_view> element = elements.Next()) {
    if (tokens.size() == kMostAddedTokens) {
      return Fail(Blame::kCaller, "there are too many added tokens");
    }
    TRY(AddedToken token, ReadAddedToken(*element));
    tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace

Result<TokenizerJson> TokenizerJson::Read(std::string_view document) {
  if (document.size() > Tokenizer::kMaxFile) return Fail(Blame::kCaller, "the file is too large");
  if (FindNotUtf8(document) != document.npos) return Fail(Blame::kCaller, "the file is not UTF-8");
  TokenizerJson read;
  bool has_model = false;
  JsonScanner scanner(document);
  for (;;) {
    TRY(const std::optional<JsonScanner::Member> member, scanner.Next());
    if (!member) break;
    Json* part = JsonKeyIs(member->key, "normalizer")       ? &read.normalizer
                 : JsonKeyIs(member->key, "pre_tokenizer")  ? &read.pre_tokenizer
                 : JsonKeyIs(member->key, "post_processor") ? &read.post_processor
                 : JsonKeyIs(member->key, "decoder")        ? &read.decoder
                                                            : nullptr;
    if (part != nullptr) {
      TRY(*part, Json::Parse(member->value));
    } else if (JsonKeyIs(member->key, "model")) {
      TRY(read.rules, ReadModel(member->value));
      has_model = true;
    } else if (JsonKeyIs(member->key, "added_tokens")) {
      TRY(read.added_tokens, ReadAddedTokens(member->value));
    }
  }
  if (!has_model) return Fail(Blame::kCaller, "the file has no model");
  return read;
}

}  // namespace fathom
