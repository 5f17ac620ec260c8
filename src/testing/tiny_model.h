// For tests: a model with a vocabulary of a few words, and ChatML for chats.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "text/model/language_model.h"

namespace fathom {

// Printable ASCII, spaces and line feeds, and some words that are one token each.
class TinyVocabulary {
 public:
  TinyVocabulary() {
    for (const std::string_view special : kSpecials) Add(special);
    for (char c = '!'; c <= '~'; ++c) Add(std::string(1, c));
    Add("\u010A");  // a line feed, and
    Add("\u0120");  // a space, as byte-level vocabularies write them
    for (const std::string_view word : {"system", "user", "assistant", "hello"}) {
      AddWord({}, word);
    }
    for (const std::string_view word : {"lead", "tide", "depth", "mark"}) AddWord("\u0120", word);
  }

  std::string Json() const {
    std::string added;
    for (TokenId id = 0; id < std::size(kSpecials); ++id) {
      added += fmt::format(
          R"({}{{"id":{},"content":"{}","single_word":false,"lstrip":false,"rstrip":false,)"
          R"("normalized":false,"special":true}})",
          added.empty() ? "" : ",", id, kSpecials[id]);
    }
    return fmt::format(
        R"({{"version":"1.0","truncation":null,"padding":null,"added_tokens":[{}],)"
        R"("normalizer":null,"pre_tokenizer":{{"type":"ByteLevel","add_prefix_space":false,)"
        R"("trim_offsets":true,"use_regex":true}},"post_processor":{{"type":"TemplateProcessing",)"
        R"("single":[{{"SpecialToken":{{"id":"<|begin|>","type_id":0}}}},)"
        R"({{"Sequence":{{"id":"A","type_id":0}}}}],"pair":[{{"Sequence":{{"id":"A","type_id":0}}}},)"
        R"({{"Sequence":{{"id":"B","type_id":0}}}}],"special_tokens":{{"<|begin|>":)"
        R"({{"id":"<|begin|>","ids":[{}],"tokens":["<|begin|>"]}}}}}},"decoder":{{)"
        R"("type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true}},)"
        R"("model":{{"type":"BPE","dropout":null,"unk_token":null,)"
        R"("continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,)"
        R"("byte_fallback":false,"ignore_merges":false,"vocab":{{{}}},"merges":[{}]}}}})",
        added, kBegin, vocab_, merges_);
  }

  // Ids of the special tokens.
  static constexpr TokenId kBegin = 0;
  static constexpr TokenId kEnd = 2;

 private:
  static constexpr std::string_view kSpecials[] = {"<|begin|>", "<|im_start|>", "<|im_end|>"};

  void Add(std::string_view token) {
    if (!vocab_.empty()) vocab_ += ',';
    AppendJsonString(vocab_, token);
    vocab_ += fmt::format(":{}", next_++);
  }

  void AddWord(std::string_view space, std::string_view word) {
    std::string left(space.empty() ? word.substr(0, 1) : space);
    for (const char c : word.substr(space.empty() ? 1 : 0)) {
      if (!merges_.empty()) merges_ += ',';
      AppendJsonString(merges_, fmt::format("{} {}", left, c));
      left += c;
      Add(left);
    }
  }

  TokenId next_ = 0;
  std::string vocab_;
  std::string merges_;
};

inline std::shared_ptr<const LanguageModel> TinyModel() {
  ModelFiles files;
  files.tokenizer_path = "tokenizer.json";
  files.tokenizer = TinyVocabulary().Json();
  files.chat_template =
      R"({% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }})"
      R"({% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %})";
  auto model = LanguageModel::Parse(files);
  EXPECT_TRUE(model) << model.error().what;
  return model ? *std::move(model) : nullptr;
}

}  // namespace fathom
