#include "text/jinja/value.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "codec/json.h"

namespace fathom {
namespace {

TEST(TemplateValue, IsWhatItIsMadeOf) {
  EXPECT_TRUE(TemplateValue().is_undefined());
  EXPECT_TRUE(TemplateValue(nullptr).is_none());
  EXPECT_EQ(*TemplateValue(true).boolean(), true);
  EXPECT_EQ(*TemplateValue(7).integer(), 7);
  EXPECT_EQ(*TemplateValue(0.5).real(), 0.5);
  EXPECT_EQ(*TemplateValue("x").text(), "x");
  EXPECT_EQ(TemplateValue("x").integer(), nullptr);
}

TEST(TemplateValue, SharesItsTextWithItsCopies) {
  const TemplateValue text(std::string(100, 'x'));
  const TemplateList copies(2, text);
  EXPECT_EQ(copies[1].text(), text.text());
  EXPECT_TRUE(copies[1].Is(text));
  EXPECT_FALSE(TemplateValue(std::string(100, 'x')).Is(text));
}

TEST(TemplateValue, TakesTheLastOfARepeatedKeyInThePlaceOfTheFirst) {
  std::string members = R"({"a": 1, "b": 2, "a": 3)";
  const TemplateValue few = TemplateValue::Of(*Json::Parse(members + "}"));
  ASSERT_EQ(few.dict()->size(), 2U);
  EXPECT_EQ(few.dict()->front().first, "a");
  EXPECT_EQ(*few.dict()->front().second.integer(), 3);

  for (int i = 0; i < 100; ++i) members += R"(, "k)" + std::to_string(i) + R"(": 0)";
  const TemplateValue many = TemplateValue::Of(*Json::Parse(members + "}"));
  ASSERT_EQ(many.dict()->size(), 102U);
  EXPECT_EQ(*many.dict()->front().second.integer(), 3);
}

TEST(TemplateValue, KeepsIntegersThatNeed64BitsWithoutASign) {
  const TemplateValue largest = TemplateValue::Of(*Json::Parse("18446744073709551615"));
  ASSERT_NE(largest.large_integer(), nullptr);
  EXPECT_EQ(largest.large_integer()->digits, "18446744073709551615");
  EXPECT_EQ(TemplateValue(uint64_t{7}).large_integer(), nullptr);
}

TEST(TemplateValue, KeepsKeysThatAreNoTexts) {
  for (const TemplateValue& key : {TemplateValue("1"), TemplateValue(1), TemplateValue(-7),
                                   TemplateValue(nullptr), TemplateValue("")}) {
    const auto written = DictKey(key);
    ASSERT_TRUE(written);
    EXPECT_EQ(KeyValue(*written).kind(), key.kind());
  }
  EXPECT_NE(DictKey(TemplateValue(1)), DictKey(TemplateValue("1")));
  EXPECT_EQ(*KeyValue(*DictKey(TemplateValue(-7))).integer(), -7);
  EXPECT_FALSE(DictKey(TemplateValue(1.5)));
}

TEST(TemplateValue, KnowsHowDeepItIs) {
  EXPECT_EQ(TemplateValue("x").depth(), 0U);
  EXPECT_EQ(TemplateValue::Of(*Json::Parse(R"([1, {"a": [2]}])")).depth(), 3U);
}

}  // namespace
}  // namespace fathom
