// What does transformers 5 make of a tokenizer.json whose model names the class LlamaTokenizer? It
// takes vocabulary and merges from the file and does the rest in its own way.
#pragma once

#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_json.h"

namespace fathom {

// Changes the parts of the file accordingly; a file that works on bytes stays as it is.
void UseLlamaPipeline(const LlamaPipeline& llama, TokenizerJson& read);

}  // namespace fathom
