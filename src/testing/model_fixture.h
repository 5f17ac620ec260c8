// A small model for tests: its tokens are bytes, some pairs of letters, and special tokens.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "text/model/language_model.h"
#include "text/unicode/utf8.h"

namespace fathom {

// How byte-level vocabularies write bytes: printable ones unchanged, the others from U+0100 on.
inline std::string ByteAsText(int byte) {
  const auto printable = [](int b) {
    return (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || (b >= 0xae && b <= 0xff);
  };
  int moved = 0;
  for (int b = 0; b < byte; ++b) moved += printable(b) ? 0 : 1;
  std::string out;
  AppendCodePoint(out, static_cast<uint32_t>(printable(byte) ? byte : 0x100 + moved));
  return out;
}

// Byte b is token b; "he", "ll", "hell", "hello" follow; special tokens from 260 on.
constexpr TokenId kHello = 259;
constexpr TokenId kBegin = 260;
constexpr TokenId kStart = 261;
constexpr TokenId kEnd = 262;

inline std::string SmallTokenizer() {
  std::string vocab;
  for (int byte = 0; byte < 256; ++byte) {
    AppendJsonString(vocab, ByteAsText(byte));
    vocab += ":" + std::to_string(byte) + ",";
  }
  vocab += R"("he":256,"ll":257,"hell":258,"hello":259)";
  const auto special = [](TokenId id, std::string_view text) {
    return R"({"id":)" + std::to_string(id) + R"(,"content":")" + std::string(text) +
           R"(","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,)" +
           R"("special":true})";
  };
  return R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)" +
         special(kBegin, "<begin>") + "," + special(kStart, "<start>") + "," +
         special(kEnd, "<end>") +
         R"(],"normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,)"
         R"("trim_offsets":true,"use_regex":true},"post_processor":{"type":"TemplateProcessing",)"
         R"("single":[{"SpecialToken":{"id":"<begin>","type_id":0}},{"Sequence":{"id":"A",)"
         R"("type_id":0}}],"pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B",)"
         R"("type_id":1}}],"special_tokens":{"<begin>":{"id":"<begin>","ids":[260],)"
         R"("tokens":["<begin>"]}}},"decoder":{"type":"ByteLevel","add_prefix_space":true,)"
         R"("trim_offsets":true,"use_regex":true},"model":{"type":"BPE","dropout":null,)"
         R"("unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,)"
         R"("fuse_unk":false,"byte_fallback":false,"ignore_merges":false,"vocab":{)" +
         vocab + R"(},"merges":["h e","l l","he ll","hell o"]}})";
}

// "<begin><start>user\nhello<end>", one after the other.
constexpr std::string_view kSmallTemplate =
    "{{ bos_token }}{% for message in messages %}<start>{{ message.role }}\n"
    "{{ message.content }}<end>{% endfor %}{% if add_generation_prompt %}<start>assistant\n"
    "{% endif %}";

inline ModelFiles SmallFiles(std::string_view chat_template = kSmallTemplate) {
  ModelFiles files;
  files.tokenizer_path = "tokenizer.json";
  files.tokenizer = SmallTokenizer();
  files.tokenizer_config = R"({"bos_token":"<begin>","eos_token":{"content":"<end>"}})";
  files.chat_template = std::string(chat_template);
  return files;
}

inline std::shared_ptr<const LanguageModel> SmallModel(
    std::string_view chat_template = kSmallTemplate) {
  auto model = LanguageModel::Parse(SmallFiles(chat_template));
  if (!model) return nullptr;
  return *std::move(model);
}

}  // namespace fathom
