// For tests and fuzz programs: tokenizer.json texts with their own small vocabularies.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "codec/json.h"
#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/word_splitter.h"
#include "text/unicode/utf8.h"

namespace fathom {

struct SmallTokenizer {
  std::vector<std::string> tokens;  // by id
  std::vector<std::pair<std::string, std::string>> merges;
  std::string normalizer = "null";
  std::string pre_tokenizer = R"({"type":"ByteLevel","add_prefix_space":false})";
  std::string post_processor = "null";
  std::string decoder = R"({"type":"ByteLevel"})";
  std::string added_tokens = "[]";
  std::string more_of_model;  // "\"ignore_merges\":true,"
  bool merges_as_pairs = false;

  // All bytes, and these merges of bytes: {"t", "h"}, {"th", "e"}.
  static SmallTokenizer OfBytes(const std::vector<std::pair<std::string, std::string>>& pairs) {
    SmallTokenizer made;
    for (int byte = 0; byte < 256; ++byte) {
      made.tokens.push_back(CharactersOfBytes(std::string(1, static_cast<char>(byte))));
    }
    for (const auto& [left, right] : pairs) {
      made.AddMerge(CharactersOfBytes(left), CharactersOfBytes(right));
    }
    return made;
  }

  // These characters, and these merges of them; not split into words, as in SentencePiece.
  static SmallTokenizer OfCharacters(
      std::string_view characters, const std::vector<std::pair<std::string, std::string>>& pairs) {
    SmallTokenizer made;
    while (!characters.empty()) {
      const size_t length = FirstCodePoint(characters).length;
      made.tokens.emplace_back(characters.substr(0, length));
      characters.remove_prefix(length);
    }
    for (const auto& [left, right] : pairs) made.AddMerge(left, right);
    made.pre_tokenizer = "null";
    made.decoder = R"({"type":"Fuse"})";
    return made;
  }

  // Splits at a pattern before it takes bytes.
  void SetPattern(WordPattern pattern) {
    JsonWriter w;
    w.BeginObject().Key("type").String("Sequence").Key("pretokenizers").BeginArray();
    for (const std::string_view source : ExpressionsOf(pattern)) {
      w.BeginObject().Key("type").String("Split").Key("behavior").String("Isolated");
      w.Key("pattern").BeginObject().Key("Regex").String(source).EndObject().EndObject();
    }
    w.Raw(R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false})");
    pre_tokenizer = w.EndArray().EndObject().Take();
  }

  void AddMerge(const std::string& left, const std::string& right) {
    merges.emplace_back(left, right);
    if (std::ranges::find(tokens, left + right) == tokens.end()) tokens.push_back(left + right);
  }

  std::string Json() const {
    JsonWriter w;
    w.BeginObject().Key("version").String("1.0").Key("added_tokens").Raw(added_tokens);
    w.Key("normalizer").Raw(normalizer).Key("pre_tokenizer").Raw(pre_tokenizer);
    w.Key("post_processor").Raw(post_processor).Key("decoder").Raw(decoder);
    w.Key("model").Raw("{" + more_of_model + Model() + "}").EndObject();
    return w.Take();
  }

  std::unique_ptr<const Tokenizer> Parsed() const {
    auto parsed = Tokenizer::Parse(Json());
    CHECK(parsed);
    return *std::move(parsed);
  }

  std::string Error() const {
    const auto parsed = Tokenizer::Parse(Json());
    return parsed ? "parsed" : parsed.error().what;
  }

 private:
  std::string Model() const {
    JsonWriter vocabulary;
    vocabulary.BeginObject();
    for (size_t id = 0; id < tokens.size(); ++id) vocabulary.Key(tokens[id]).Unsigned(id);
    vocabulary.EndObject();
    JsonWriter list;
    list.BeginArray();
    for (const auto& [left, right] : merges) {
      if (merges_as_pairs) {
        list.BeginArray().String(left).String(right).EndArray();
      } else {
        list.String(left + " " + right);
      }
    }
    list.EndArray();
    return "\"type\":\"BPE\",\"vocab\":" + vocabulary.text() + ",\"merges\":" + list.text();
  }
};

inline std::vector<TokenId> EncodeAll(const Tokenizer& tokenizer, std::string_view text,
                                      bool add_special = false) {
  Encoder encoder(tokenizer);
  const auto ids = encoder.Encode(text, add_special);
  CHECK(ids);
  return *ids;
}

// The pieces that a text is encoded to: {"th", "e"}.
inline std::vector<std::string> Pieces(const Tokenizer& tokenizer, std::string_view text,
                                       bool add_special = false) {
  std::vector<std::string> pieces;
  for (const TokenId id : EncodeAll(tokenizer, text, add_special)) {
    pieces.push_back(tokenizer.Piece(id));
  }
  return pieces;
}

// Naive byte-pair encoding for comparison: symbols are texts, and every step looks at all pairs.
inline std::vector<std::string> NaiveMerged(
    std::vector<std::string> symbols,
    const std::vector<std::pair<std::string, std::string>>& merges) {
  for (;;) {
    size_t best = merges.size();
    size_t where = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      for (size_t rank = 0; rank < best; ++rank) {
        if (merges[rank] != std::pair(symbols[i], symbols[i + 1])) continue;
        best = rank;
        where = i;
      }
    }
    if (best == merges.size()) return symbols;
    symbols[where] += symbols[where + 1];
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(where) + 1);
  }
}

}  // namespace fathom
