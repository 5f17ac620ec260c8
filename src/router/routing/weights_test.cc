#include "router/routing/weights.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

std::string Refusal(std::string_view changes) {
  const auto weights = Override({}, changes);
  return weights ? "accepted" : weights.error().what;
}

TEST(Weights, CanBeOverriddenOneByOne) {
  const Weights usual{.overlap_credit = 0.5, .prefill_scale = 7, .temperature = 0.25};
  const auto weights = Override(usual, "prefill_load_scale=4");
  ASSERT_TRUE(weights);
  EXPECT_EQ(*weights, (Weights{.overlap_credit = 0.5, .prefill_scale = 4, .temperature = 0.25}));
}

TEST(Weights, CanAllBeOverriddenAtOnce) {
  const auto weights = Override(
      {},
      " overlap_score_credit = 0.5,prefill_load_scale=4; decode_active_request_weight=100, "
      "host_cache_hit_weight=0.25, disk_cache_hit_weight=0, router_temperature=1e-1, ");
  ASSERT_TRUE(weights) << weights.error().what;
  EXPECT_EQ(*weights, (Weights{.overlap_credit = 0.5,
                               .prefill_scale = 4,
                               .active_request = 100,
                               .host_hit = 0.25,
                               .disk_hit = 0,
                               .temperature = 0.1}));
}

TEST(Weights, StayAsTheyAreWithoutAnOverride) {
  for (const std::string_view nothing : {"", " ", ",", " ; ,"}) {
    const auto weights = Override(Weights{.prefill_scale = 3}, nothing);
    ASSERT_TRUE(weights) << nothing;
    EXPECT_EQ(*weights, Weights{.prefill_scale = 3});
  }
}

TEST(Weights, RefuseNumbersThatMakeNoSense) {
  for (const std::string_view value :
       {"", "-1", "1.01", "nan", "inf", "-nan", "1e999", "0.5x", "0.5 0.5", "=1", "half"}) {
    EXPECT_EQ(Refusal("overlap_score_credit=" + std::string(value)),
              "overlap_score_credit must be a number from 0 to 1")
        << value;
  }
  EXPECT_NE(Refusal("overlap_score_credit"), "accepted");
  EXPECT_NE(Refusal("router_temperature=101"), "accepted");
  EXPECT_NE(Refusal("prefill_load_scale=4, router_temperature=x"), "accepted");
}

TEST(Weights, NameWhatIsPossibleWithoutRepeatingWhatWasAsked) {
  const std::string refusal = Refusal("Overlap_Score_Credit=1");
  EXPECT_EQ(refusal.find("Overlap"), std::string::npos);
  for (const char* name : {"overlap_score_credit", "prefill_load_scale", "router_temperature",
                           "host_cache_hit_weight"}) {
    EXPECT_NE(refusal.find(name), std::string::npos) << refusal;
  }
}

}  // namespace
}  // namespace fathom
