#include "lab/bench/bench_settings.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

class BenchSettingsTest : public testing::Test {
 protected:
  Result<void> Read(std::initializer_list<std::string_view> words) {
    const BenchSetting settings[] = {{"workers", &workers_, 1, 64},
                                     {"requests", &requests_},
                                     {"scale", &scale_, 0, 10},
                                     {"profile", &profile_},
                                     {"baseline", &baseline_}};
    return ReadSettings({words.begin(), words.size()}, settings);
  }

  uint32_t workers_ = 8;
  uint64_t requests_ = 100;
  double scale_ = 1;
  std::string profile_ = "polynomial";
  bool baseline_ = true;
};

TEST_F(BenchSettingsTest, SetsWhatIsNamedAndLeavesTheRest) {
  ASSERT_TRUE(Read({"workers=4", "scale=0.5", "profile=", "baseline=0"}));
  EXPECT_EQ(workers_, 4u);
  EXPECT_EQ(requests_, 100u);
  EXPECT_EQ(scale_, 0.5);
  EXPECT_EQ(profile_, "");
  EXPECT_FALSE(baseline_);
}

TEST_F(BenchSettingsTest, RefusesWhatItDoesNotKnow) {
  EXPECT_FALSE(Read({"workers"}));
  EXPECT_FALSE(Read({"=4"}));
  EXPECT_FALSE(Read({"worker=4"}));
}

TEST_F(BenchSettingsTest, RefusesValuesThatAreNone) {
  for (const std::string_view word :
       {"workers=", "workers=0", "workers=65", "workers=-1", "workers=4x", "workers=1.5",
        "scale=", "scale=nan", "scale=inf", "scale=11", "scale=1 ", "baseline=yes", "baseline="}) {
    EXPECT_FALSE(Read({word})) << word;
  }
}

TEST_F(BenchSettingsTest, NamesTheFirstWordThatIsWrong) {
  const auto read = Read({"workers=4", "requests=many", "scale=-1"});
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().what.find("requests=many"), std::string::npos);
}

}  // namespace
}  // namespace fathom
