// Reads a tokenizer.json: its model and its added tokens, and the parts that say what is done
// before and after, as they stand.
//
// The vocabulary and the merges are hundreds of thousands of small texts. They are read from the
// document as they come, without a tree of them in between.
//
// Errors  kCaller, naming what is wrong. `what` begins with "not supported: " for what is right but
//         beyond us.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/json.h"
#include "text/tokenizer/bpe.h"
#include "text/tokenizer/tokenizer.h"

namespace fathom {

struct TokenizerJson {
  static Result<TokenizerJson> Read(std::string_view document);

  BpeRules rules;
  std::vector<AddedToken> added_tokens;
  Json normalizer;
  Json pre_tokenizer;
  Json post_processor;
  Json decoder;
};

}  // namespace fathom
