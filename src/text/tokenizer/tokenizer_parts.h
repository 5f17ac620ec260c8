// What a Tokenizer is made of.
//
// Threads  Immutable once built.
#pragma once

#include <vector>

#include "text/tokenizer/added_token_matcher.h"
#include "text/tokenizer/bpe.h"
#include "text/tokenizer/decoder.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/post_processor.h"
#include "text/tokenizer/pre_tokenizer.h"
#include "text/tokenizer/tokenizer.h"

namespace fathom {

struct Tokenizer::Parts {
  Bpe bpe;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  PostProcessor post_processor;
  Decoder decoder;
  std::vector<AddedToken> added;
  Vocabulary added_texts;
  AddedTokenMatcher raw;         // looked for in the text as it comes
  AddedTokenMatcher normalized;  // looked for in what the normalizer made of it
  bool cuts_at_lines;            // NextCut() may find something
};

}  // namespace fathom
