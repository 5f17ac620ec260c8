#include "codec/json.h"

#include <gtest/gtest.h>

#include <limits>

namespace fathom {
namespace {

Json Parsed(std::string_view text) {
  Result<Json> json = Json::Parse(text);
  EXPECT_TRUE(json) << text;
  return json.value_or(Json());
}

std::string Rewritten(std::string_view text) {
  std::string out;
  Parsed(text).WriteTo(out);
  return out;
}

TEST(Json, ReadsIntegersThatFitNoTypeAsFloatingPoint) {
  const auto read = Json::ParseWithLargeNumbers(
      R"({"a":1000000000000000019884624838656,"b":"12345678901234567890123","c":[-123456789012345678901],)"
      R"("d":1.12345678901234567890123,"e":1e-10,"f":18446744073709551615,"g":"\\"})");
  ASSERT_TRUE(read);
  const Json& json = *read;
  EXPECT_EQ(json.Find("a")->number(), 1e30);
  EXPECT_EQ(*json.Find("b")->string(), "12345678901234567890123");
  EXPECT_EQ(json.Find("c")->array()->front().number(), -123456789012345678901.0);
  EXPECT_EQ(json.Find("d")->number(), 1.1234567890123457);
  EXPECT_EQ(json.Find("e")->number(), 1e-10);
  EXPECT_EQ(json.Find("f")->unsigned_integer(), 18446744073709551615u);
  EXPECT_FALSE(Json::ParseWithLargeNumbers("[1000000000000000019884624838656,01]"));
  EXPECT_FALSE(Json::ParseWithLargeNumbers("[1000000000000000019884624838656"));
  EXPECT_FALSE(Json::Parse("[1000000000000000019884624838656]"));
}

TEST(Json, KnowsEveryKindOfValue) {
  EXPECT_TRUE(Parsed("null").is_null());
  EXPECT_TRUE(*Parsed("true").boolean());
  EXPECT_EQ(*Parsed("\"a\\u00e9\"").string(), "a\u00e9");
  EXPECT_EQ(Parsed("[1,2]").array()->size(), 2u);
  EXPECT_EQ(Parsed("{\"a\":1}").object()->front().first, "a");
  EXPECT_EQ(Parsed("1").string(), nullptr);
  EXPECT_EQ(Parsed("1").boolean(), nullptr);
  EXPECT_EQ(Parsed("\"1\"").number(), std::nullopt);
}

TEST(Json, KeepsWholeNumbersWhole) {
  EXPECT_EQ(std::get<int64_t>(Parsed("-9223372036854775808").value()),
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(std::get<uint64_t>(Parsed("18446744073709551615").value()),
            std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(std::get<double>(Parsed("1.5").value()), 1.5);
}

TEST(Json, GivesNumbersAsWhatIsAskedForIfTheyFit) {
  EXPECT_EQ(Parsed("7").number(), 7.0);
  EXPECT_EQ(Parsed("18446744073709551615").number(), 0x1p64);
  EXPECT_EQ(Parsed("7").unsigned_integer(), 7u);
  EXPECT_EQ(Parsed("7.0").unsigned_integer(), 7u);
  EXPECT_EQ(Parsed("18446744073709551615").unsigned_integer(), 18446744073709551615u);
  EXPECT_EQ(Parsed("7.5").unsigned_integer(), std::nullopt);
  EXPECT_EQ(Parsed("-1").unsigned_integer(), std::nullopt);
  EXPECT_EQ(Parsed("1e30").unsigned_integer(), std::nullopt);
}

TEST(Json, FindsMembers) {
  const Json json = Parsed("{\"a\":{\"b\":[true]}}");
  ASSERT_NE(json.Find("a"), nullptr);
  ASSERT_NE(json.Find("a")->Find("b"), nullptr);
  EXPECT_EQ(json.Find("b"), nullptr);
  EXPECT_EQ(json.Find("a")->Find("b")->Find("c"), nullptr) << "an array has no members";
}

TEST(Json, RefusesWhatIsNotJson) {
  for (const std::string_view text : {"", " ", "{", "{\"a\":1,}", "[1]]", "nul", "\"\xff\""}) {
    const Result<Json> json = Json::Parse(text);
    ASSERT_FALSE(json) << text;
    EXPECT_TRUE(json.error().what.starts_with("invalid JSON: ")) << json.error().what;
  }
}

TEST(Json, SurvivesAbsurdDepth) { EXPECT_FALSE(Json::Parse(std::string(1'000'000, '['))); }

TEST(Json, IsWrittenCompactly) {
  EXPECT_EQ(Rewritten(" { \"a\" : [ 1 , -2 , 2.5 , 18446744073709551615 ] , \"b\" : { } , "
                      "\"c\" : [ null , false , \"x\\n\\\"\" ] } "),
            "{\"a\":[1,-2,2.5,18446744073709551615],\"b\":{},\"c\":[null,false,\"x\\n\\\"\"]}");
}

TEST(Json, KeepsADoubleADoubleWhenWritten) {
  EXPECT_EQ(Rewritten("[1e1,2.0,-0.0,9007199254740994.0,1e19,5e-1]"),
            "[10.0,2.0,-0.0,9007199254740994.0,1e+19,0.5]");
}

TEST(JsonWriter, PutsTheCommas) {
  JsonWriter writer;
  writer.BeginObject().Key("a").BeginArray().EndArray().Key("b").BeginArray();
  writer.Int(-1).Unsigned(2).BeginObject().EndObject().Bool(true).Null().Raw("[3]").EndArray();
  writer.Key("c").String("d").EndObject();
  EXPECT_EQ(writer.text(), "{\"a\":[],\"b\":[-1,2,{},true,null,[3]],\"c\":\"d\"}");
}

TEST(JsonWriter, WritesNumbersThatReadersUnderstand) {
  JsonWriter writer;
  writer.BeginArray().Number(0.1).Number(1e300).Number(5);
  writer.Number(std::numeric_limits<double>::infinity());
  writer.Number(std::numeric_limits<double>::quiet_NaN()).EndArray();
  EXPECT_EQ(writer.text(), "[0.1,1e+300,5,null,null]");
  EXPECT_EQ(*Parsed(writer.text()).array()->at(1).number(), 1e300);
}

TEST(JsonWriter, EscapesKeysAndStrings) {
  JsonWriter writer;
  writer.BeginObject().Key("a\"").String("\\\x01").EndObject();
  EXPECT_EQ(writer.text(), "{\"a\\\"\":\"\\\\\\u0001\"}");
}

}  // namespace
}  // namespace fathom
