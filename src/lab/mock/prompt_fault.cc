#include "lab/mock/prompt_fault.h"

#include <algorithm>
#include <array>

#include "text/model/language_model.h"

namespace fathom {
namespace {

constexpr TokenId kSomeBos = 1;              // of a model that begins with none
constexpr uint64_t kSomeVocabulary = 32000;  // where there is no model
constexpr ptrdiff_t kUntouched = 8;          // tokens before those of another template
constexpr std::array<TokenId, 3> kInserted = {3, 1, 2};

TokenId BosOf(const LanguageModel* model) {
  const bool begins = model != nullptr && !model->tokenizer().prefix().empty();
  return begins ? model->tokenizer().prefix().front() : kSomeBos;
}

void Rename(std::vector<TokenId>& prompt, const LanguageModel* model) {
  const uint64_t size = model != nullptr ? model->tokenizer().vocabulary_size() : kSomeVocabulary;
  for (TokenId& id : prompt) id = static_cast<TokenId>((id * uint64_t{7} + 13) % size);
}

}  // namespace

void Distort(std::vector<TokenId>& prompt, PromptFault fault, const LanguageModel* model) {
  switch (fault) {
    case PromptFault::kNone:
      return;
    case PromptFault::kBos:
      prompt.insert(prompt.begin(), BosOf(model));
      return;
    case PromptFault::kTemplate:
      prompt.insert(prompt.begin() + std::min(kUntouched, std::ssize(prompt)), kInserted.begin(),
                    kInserted.end());
      return;
    case PromptFault::kVocabulary:
      Rename(prompt, model);
      return;
  }
}

}  // namespace fathom
