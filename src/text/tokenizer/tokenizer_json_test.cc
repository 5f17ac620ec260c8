#include "text/tokenizer/tokenizer_json.h"

#include <gtest/gtest.h>

#include "testing/small_tokenizer.h"

namespace fathom {
namespace {

std::string ErrorOf(std::string_view document) {
  const Result<TokenizerJson> read = TokenizerJson::Read(document);
  if (read) return "read";
  EXPECT_EQ(read.error().blame, Blame::kCaller);
  return read.error().what;
}

std::string ModelError(std::string_view model) {
  return ErrorOf(fmt::format(R"({{"model":{}}})", model));
}

std::string AddedError(std::string_view token) {
  return ErrorOf(
      fmt::format(R"({{"added_tokens":[{}],"model":{{"vocab":{{}},"merges":[]}}}})", token));
}

TEST(TokenizerJson, ReadsMergesInBothWays) {
  SmallTokenizer small = SmallTokenizer::OfBytes({{"t", "h"}, {"th", "e"}});
  const std::vector<TokenId> ids = EncodeAll(*small.Parsed(), "the");
  EXPECT_EQ(ids, std::vector<TokenId>{257});
  small.merges_as_pairs = true;
  EXPECT_EQ(EncodeAll(*small.Parsed(), "the"), ids);
}

TEST(TokenizerJson, ReadsTheModelBeforeOrBehindItsParts) {
  const Result<TokenizerJson> read = TokenizerJson::Read(
      R"({"model":{"merges":["a b"],"vocab":{"a":0,"b":1,"ab":2}},"decoder":{"type":"Fuse"}})");
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(read->rules.merges.size(), 1);
  EXPECT_NE(read->decoder.object(), nullptr);
}

TEST(TokenizerJson, ReadsTheFlagsOfAddedTokens) {
  const Result<TokenizerJson> read = TokenizerJson::Read(
      R"({"added_tokens":[{"id":3,"content":"<s>","special":true},
          {"id":4,"content":"x","single_word":true,"lstrip":true,"rstrip":true,"normalized":false,
           "special":false}],"model":{"vocab":{},"merges":[]}})");
  ASSERT_TRUE(read) << read.error().what;
  const AddedToken& first = read->added_tokens[0];
  EXPECT_TRUE(first.special && !first.normalized && !first.lstrip);
  const AddedToken& second = read->added_tokens[1];
  EXPECT_TRUE(second.single_word && second.lstrip && second.rstrip && !second.normalized);
}

TEST(TokenizerJson, SaysWhatIsWrongWithTheFile) {
  EXPECT_EQ(ErrorOf("{}"), "the file has no model");
  EXPECT_EQ(ErrorOf("{\"a\":\"\xff\"}"), "the file is not UTF-8");
  EXPECT_NE(ErrorOf("{\"model\":{}"), "read");
  EXPECT_NE(ErrorOf("[]"), "read");
  EXPECT_NE(ErrorOf(""), "read");
  EXPECT_EQ(ErrorOf(R"({"added_tokens":{},"model":{"vocab":{},"merges":[]}})"),
            "added_tokens is not a list");
}

TEST(TokenizerJson, SaysWhatIsWrongWithTheModel) {
  EXPECT_EQ(ModelError(R"({"vocab":{}})"), "the model has no vocabulary or no merges");
  EXPECT_EQ(ModelError(R"({"vocab":{"a":0,"b":0},"merges":[]})"),
            "the vocabulary has token 0 or its text twice");
  EXPECT_EQ(ModelError(R"({"vocab":{"a":0,"a":1},"merges":[]})"),
            "the vocabulary has token 1 or its text twice");
  for (const std::string_view id : {"-1", "4194304", "1.5", "\"1\"", "99999999999999999999"}) {
    EXPECT_EQ(ModelError(fmt::format(R"({{"vocab":{{"a":{}}},"merges":[]}})", id)),
              "the id of a token is not between 0 and 4194304");
  }
  EXPECT_EQ(ModelError(R"({"vocab":{"a":0},"merges":["a a"]})"),
            "merge 0 has a text that is not in the vocabulary");
  for (const std::string_view merge : {"\"a\"", "\"a b c\"", "[\"a\"]", "[\"a\",\"b\",\"c\"]"}) {
    EXPECT_EQ(ModelError(fmt::format(R"({{"vocab":{{}},"merges":[{}]}})", merge)),
              "a merge is not two texts");
  }
  EXPECT_EQ(ModelError(R"({"vocab":{},"merges":[1]})"), "a merge is not a text");
  EXPECT_EQ(ModelError(R"({"vocab":{},"merges":{}})"), "the merges are not a list");
  EXPECT_NE(ModelError(R"({"vocab":[],"merges":[]})"), "read");
  EXPECT_EQ(ModelError(R"({"unk_token":"?","vocab":{},"merges":[]})"),
            "the vocabulary does not have the unk_token");
}

TEST(TokenizerJson, RefusesByName) {
  EXPECT_EQ(ModelError(R"({"type":"Unigram"})"), "not supported: model Unigram");
  EXPECT_EQ(ModelError(R"({"dropout":0.1})"), "not supported: dropout");
  EXPECT_EQ(ModelError(R"({"end_of_word_suffix":"</w>"})"), "not supported: end_of_word_suffix");
  EXPECT_EQ(ModelError(R"({"continuing_subword_prefix":"##"})"),
            "not supported: continuing_subword_prefix");
  EXPECT_EQ(ModelError(R"({"dropout":0,"end_of_word_suffix":"","vocab":{},"merges":[]})"), "read");
}

TEST(TokenizerJson, SaysWhatIsWrongWithAnAddedToken) {
  EXPECT_EQ(AddedError(R"({"id":1})"), "'content' is missing");
  EXPECT_EQ(AddedError(R"({"content":"a"})"),
            "the id of an added token is not between 0 and 4194304");
  EXPECT_EQ(AddedError(R"({"content":"a","id":1,"lstrip":"yes"})"),
            "'lstrip' is neither true nor false");
}

}  // namespace
}  // namespace fathom
