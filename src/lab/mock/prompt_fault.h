// What does an engine compute with, when it is not what its own /tokenize says?
//
// Each is something that happens to fleets: a BOS token too many, another revision of the chat
// template, another tokenizer. Prompts that come as ids are never changed.
#pragma once

#include <cstdint>
#include <vector>

#include "text/tokens/token.h"

namespace fathom {

class LanguageModel;

enum class PromptFault : uint8_t {
  kNone,
  kBos,         // one more token in front
  kTemplate,    // three more, not far from the beginning
  kVocabulary,  // every id is another one, always the same
};

// `model` may be null: the mock's own tokens.
void Distort(std::vector<TokenId>& prompt, PromptFault fault, const LanguageModel* model);

}  // namespace fathom
