#include "router/fleet/model_slice.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fathom {
namespace {

TEST(ModelSliceTest, HasAllModelsWithoutPatterns) {
  EXPECT_TRUE(ModelSlice().whole());
  EXPECT_TRUE(ModelSlice().Contains("any"));
  EXPECT_TRUE(ModelSlice::Of({})->whole());
}

TEST(ModelSliceTest, HasTheModelsThatMatchAPattern) {
  const auto slice = ModelSlice::Of({"meta-llama/*", "qwen3"});
  ASSERT_TRUE(slice);
  EXPECT_FALSE(slice->whole());
  EXPECT_TRUE(slice->Contains("meta-llama/Llama-3.1-8B"));
  EXPECT_TRUE(slice->Contains("qwen3"));
  EXPECT_FALSE(slice->Contains("qwen3-32b"));
  EXPECT_TRUE(slice->Contains("")) << "a request may name no model";
}

TEST(ModelSliceTest, IsBounded) {
  EXPECT_TRUE(ModelSlice::Of(std::vector<std::string>(ModelSlice::kMostPatterns, "a")));
  EXPECT_FALSE(ModelSlice::Of(std::vector<std::string>(ModelSlice::kMostPatterns + 1, "a")));
  EXPECT_FALSE(ModelSlice::Of({""}));
  EXPECT_TRUE(ModelSlice::Of({std::string(ModelSlice::kLongestPattern, 'a')}));
  EXPECT_FALSE(ModelSlice::Of({std::string(ModelSlice::kLongestPattern + 1, 'a')}));
}

}  // namespace
}  // namespace fathom
