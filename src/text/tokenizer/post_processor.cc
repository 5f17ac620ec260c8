#include "text/tokenizer/post_processor.h"

#include <limits>
#include <string>

#include "text/tokenizer/part_json.h"

namespace fathom {
namespace {

constexpr size_t kMostTokens = 64;

Result<TokenId> ParseId(const Json& json) {
  const std::optional<uint64_t> id = json.unsigned_integer();
  if (!id || *id >= std::numeric_limits<TokenId>::max()) {
    return Fail(Blame::kCaller, "a post-processor's id is not a token id");
  }
  return static_cast<TokenId>(*id);
}

// {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}
Result<void> AppendSpecial(const Json& specials, const Json& piece, std::vector<TokenId>& out) {
  TRY(const std::string name, PartText(piece, "id"));
  TRY(const Json* special, PartMember(specials, name));
  TRY(const Json* ids, PartMember(*special, "ids"));
  if (ids->array() == nullptr) return Fail(Blame::kCaller, "'ids' is not a list");
  for (const Json& json : *ids->array()) {
    TRY(const TokenId id, ParseId(json));
    out.push_back(id);
  }
  return {};
}

// ["</s>", 2]
Result<TokenId> ParsePair(const Json& part, std::string_view key) {
  TRY(const Json* pair, PartMember(part, key));
  if (pair->array() == nullptr || pair->array()->size() != 2) {
    return Fail(Blame::kCaller, "'{}' is not a pair of token and id", key);
  }
  return ParseId((*pair->array())[1]);
}

}  // namespace

Result<void> PostProcessor::AddTemplate(const Json& json) {
  TRY(const Json* single, PartMember(json, "single"));
  TRY(const Json* specials, PartMember(json, "special_tokens"));
  if (single->array() == nullptr) return Fail(Blame::kCaller, "'single' is not a list");
  std::vector<TokenId> before;
  std::vector<TokenId> behind;
  size_t sequences = 0;
  for (const Json& piece : *single->array()) {
    if (const Json* special = piece.Find("SpecialToken"); special != nullptr) {
      TRY_VOID(AppendSpecial(*specials, *special, sequences == 0 ? before : behind));
      continue;
    }
    const Json* sequence = piece.Find("Sequence");
    if (sequence == nullptr) return Fail(Blame::kCaller, "'single' has a piece of an unknown kind");
    TRY(const std::string which, PartText(*sequence, "id"));
    if (which == "A") ++sequences;
  }
  if (sequences != 1) return Fail(Blame::kCaller, "not supported: a template without one $A");
  prefix.insert(prefix.begin(), before.begin(), before.end());
  suffix.insert(suffix.end(), behind.begin(), behind.end());
  return {};
}

Result<void> PostProcessor::AddPair(const Json& json) {
  TRY(const TokenId cls, ParsePair(json, "cls"));
  TRY(const TokenId sep, ParsePair(json, "sep"));
  prefix.insert(prefix.begin(), cls);
  suffix.push_back(sep);
  return {};
}

Result<PostProcessor> PostProcessor::Parse(const Json& json) {
  std::vector<const Json*> parts;
  TRY_VOID(FlattenParts(json, "processors", parts));
  PostProcessor processor;
  for (const Json* part : parts) {
    TRY(const std::string type, PartType(*part));
    if (type == "ByteLevel") continue;  // it changes offsets, which nobody asks for
    if (type == "TemplateProcessing") {
      TRY_VOID(processor.AddTemplate(*part));
    } else if (type == "RobertaProcessing" || type == "BertProcessing") {
      TRY_VOID(processor.AddPair(*part));
    } else {
      return Fail(Blame::kCaller, "not supported: post_processor {}", type);
    }
  }
  if (processor.prefix.size() + processor.suffix.size() > kMostTokens) {
    return Fail(Blame::kCaller, "the post-processor adds too many tokens");
  }
  return processor;
}

}  // namespace fathom
