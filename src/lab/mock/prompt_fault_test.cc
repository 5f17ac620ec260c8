#include "lab/mock/prompt_fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/tiny_model.h"

namespace fathom {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Lt;

std::vector<TokenId> Distorted(std::vector<TokenId> prompt, PromptFault fault,
                               const LanguageModel* model = nullptr) {
  Distort(prompt, fault, model);
  return prompt;
}

TEST(PromptFault, OfNoneLeavesThePromptAsItIs) {
  EXPECT_THAT(Distorted({5, 6}, PromptFault::kNone), ElementsAre(5, 6));
}

TEST(PromptFault, OfTheBosIsOneMoreTokenInFront) {
  EXPECT_THAT(Distorted({5, 6}, PromptFault::kBos), ElementsAre(1, 5, 6));
  const auto model = TinyModel();
  EXPECT_THAT(Distorted({5, 6}, PromptFault::kBos, model.get()),
              ElementsAre(TinyVocabulary::kBegin, 5, 6));
}

TEST(PromptFault, OfTheTemplateIsThreeTokensAfterTheFirstEight) {
  EXPECT_THAT(Distorted({10, 11, 12, 13, 14, 15, 16, 17, 18}, PromptFault::kTemplate),
              ElementsAre(10, 11, 12, 13, 14, 15, 16, 17, 3, 1, 2, 18));
  EXPECT_THAT(Distorted({10}, PromptFault::kTemplate), ElementsAre(10, 3, 1, 2));
}

TEST(PromptFault, OfTheVocabularyGivesEveryTokenAnotherId) {
  EXPECT_THAT(Distorted({0, 1, 1, 32000, 4294967295}, PromptFault::kVocabulary),
              ElementsAre(13, 20, 20, 13, (4294967295 * 7 + 13) % 32000));
  const auto model = TinyModel();
  const auto size = static_cast<TokenId>(model->tokenizer().vocabulary_size());
  EXPECT_THAT(Distorted({0, size - 1}, PromptFault::kVocabulary, model.get()), Each(Lt(size)));
}

}  // namespace
}  // namespace fathom
