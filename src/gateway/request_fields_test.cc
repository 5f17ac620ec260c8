#include "gateway/request_fields.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

TEST(RequestFields, ReadsModelAndStreamWhereverTheyStand) {
  const auto fields = ReadRequestFields(
      R"( {"messages":[{"role":"user","content":"\"model\":\"wrong\""}],"stream" : true ,)"
      R"("nested":{"model":"wrong","stream":false},"model":"meta/llama-3"} )");
  ASSERT_TRUE(fields) << fields.error().what;
  EXPECT_EQ(fields->model, "meta/llama-3");
  EXPECT_TRUE(fields->stream);
}

TEST(RequestFields, AreEmptyWhereTheRequestNamesNone) {
  const auto fields = ReadRequestFields("{}");
  ASSERT_TRUE(fields);
  EXPECT_EQ(fields->model, "");
  EXPECT_FALSE(fields->stream);
}

TEST(RequestFields, SeeThroughEscapesInKeysAndValues) {
  const auto fields = ReadRequestFields(R"({"m\u006fdel":"a\u0062\/\"c","str\u0065am":true})");
  ASSERT_TRUE(fields);
  EXPECT_EQ(fields->model, "ab/\"c");
  EXPECT_TRUE(fields->stream);
}

TEST(RequestFields, TakeTheLastOfSeveral) {
  const auto fields =
      ReadRequestFields(R"({"model":"a","stream":true,"m\u006fdel":"b","stream":false})");
  ASSERT_TRUE(fields);
  EXPECT_EQ(fields->model, "b");
  EXPECT_FALSE(fields->stream);
}

TEST(RequestFields, TakeOnlyTrueForAStream) {
  for (const char* value : {"null", "1", "\"true\"", "{}", "[true]", "false"}) {
    const auto fields = ReadRequestFields(std::string(R"({"stream":)") + value + "}");
    ASSERT_TRUE(fields) << value;
    EXPECT_FALSE(fields->stream) << value;
  }
}

TEST(RequestFields, RefuseAModelThatIsNoText) {
  for (const char* value : {"7", "[]", "{}", "true", R"("\ud800")"}) {
    const auto fields = ReadRequestFields(std::string(R"({"model":)") + value + "}");
    ASSERT_FALSE(fields) << value;
    EXPECT_EQ(fields.error().blame, Blame::kCaller);
  }
}

TEST(RequestFields, TakeANullModelForNone) {
  const auto fields = ReadRequestFields(R"({"model":"a","model":null})");
  ASSERT_TRUE(fields);
  EXPECT_EQ(fields->model, "");
}

TEST(RequestFields, RefuseABodyThatIsNotOneJsonObject) {
  for (const char* body :
       {"", " ", "null", "[]", "\"{}\"", "{", "{}{}", "{} x", R"({"a":})", R"({"model":"m",})",
        R"({'model':'m'})", R"({"a":01})", "{\"a\":\"\n\"}"}) {
    const auto fields = ReadRequestFields(body);
    ASSERT_FALSE(fields) << body;
    EXPECT_EQ(fields.error().blame, Blame::kCaller);
  }
}

}  // namespace
}  // namespace fathom
