#include "router/gateway/decision_text.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

std::string Tiers(const std::array<uint32_t, kTiers>& tokens) {
  JsonWriter w;
  WriteTiers(w, tokens);
  return w.Take();
}

TEST(DecisionText, ShowsWhatEachTierAdds) {
  EXPECT_EQ(Tiers({32, 32, 32, 32}), R"({"device":32,"host":0,"disk":0,"external":0})");
  EXPECT_EQ(Tiers({32, 48, 48, 64}), R"({"device":32,"host":16,"disk":0,"external":16})");
  EXPECT_EQ(Tiers({0, 0, 0, 0}), R"({"device":0,"host":0,"disk":0,"external":0})");
}

}  // namespace
}  // namespace fathom
