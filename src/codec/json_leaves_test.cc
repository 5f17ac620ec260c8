#include "codec/json_leaves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Listed final : public JsonLeaves {
 public:
  std::vector<std::string> seen;

 private:
  void OnLeaf(std::string_view value) override {
    std::string place = At({"a"}) ? "a" : At({"a", "b"}) ? "a.b" : At({}) ? "-" : "?";
    seen.push_back(place + "=" + std::string(value));
  }
};

std::vector<std::string> Leaves(std::string_view text, size_t piece = 1000) {
  Listed leaves;
  for (size_t at = 0; at < text.size(); at += piece) leaves.Feed(text.substr(at, piece));
  return leaves.seen;
}

TEST(JsonLeaves, FindsValuesAndTheirPlaces) {
  EXPECT_THAT(Leaves(R"({"a":{"b":"x","c":1},"b":true})"),
              ElementsAre(R"(a.b="x")", "?=1", "?=true"));
  EXPECT_THAT(Leaves(R"([1, "two"])"), ElementsAre("-=1", R"(-="two")"));
}

TEST(JsonLeaves, LooksThroughArrays) {
  EXPECT_THAT(Leaves(R"({"a":[{"b":null},{"b":2}],"a":3})"),
              ElementsAre("a.b=null", "a.b=2", "a=3"));
}

TEST(JsonLeaves, IsNotMisledByBracketsAndQuotesInStrings) {
  EXPECT_THAT(Leaves(R"({"x":"\"}],{\"a\":1","a":"\\"})"),
              ElementsAre(R"(?="\"}],{\"a\":1")", R"(a="\\")"));
}

TEST(JsonLeaves, SkipsWhatIsDeep) {
  const std::string deep = std::string(100'000, '[') + "7" + std::string(100'000, ']');
  EXPECT_THAT(Leaves(R"({"a":)" + deep + R"(,"a":1})"), ElementsAre("a=1"));
  EXPECT_THAT(Leaves(deep), IsEmpty());
}

TEST(JsonLeaves, ShowsTheBeginningOfALongValueAndNoLongKey) {
  const std::string text(500, 'x');
  const auto seen = Leaves(R"({"a":")" + text + R"(","a)" + text + R"(":1})");
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].size(), 2 + JsonLeaves::kLongest);
  EXPECT_EQ(seen[1], "?=1");
}

TEST(JsonLeaves, DoesNotDependOnHowTheTextIsCut) {
  const std::string_view text = R"( {"a" : {"b\n":[1,2,"\u0041"], "b" : false } ,"a":-1.5e3 } )";
  const auto whole = Leaves(text);
  EXPECT_THAT(whole, ElementsAre("?=1", "?=2", R"(?="\u0041")", "a.b=false", "a=-1.5e3"));
  for (size_t piece = 1; piece < 20; ++piece) EXPECT_EQ(Leaves(text, piece), whole);
}

TEST(JsonLeaves, SurvivesWhatIsNoJson) {
  EXPECT_THAT(Leaves("]]}}::,,\"{"), IsEmpty());
  EXPECT_THAT(Leaves("[DONE]"), ElementsAre("-=DONE"));
}

}  // namespace
}  // namespace fathom
