#include "codec/json_member.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

std::string Find(std::string_view document, size_t piece = std::string_view::npos) {
  JsonMemberFinder finder("usage");
  for (; !document.empty(); document.remove_prefix(std::min(piece, document.size()))) {
    finder.Feed(document.substr(0, piece));
  }
  return std::string(finder.value().value_or("nothing"));
}

TEST(JsonMemberFinder, FindsTheMemberWhereverItIsCut) {
  const std::string_view document =
      R"( {"id":"a\"usage\":{","choices":[{"usage":1,"text":"}]\\"},[2]] , "usage" : )"
      R"({"prompt_tokens":7,"x":[{}],"y":"},{\""} ,"last":null} )";
  const std::string_view value = R"({"prompt_tokens":7,"x":[{}],"y":"},{\""})";
  for (size_t piece = 1; piece <= document.size(); ++piece) {
    EXPECT_EQ(Find(document, piece), value) << piece;
  }
}

TEST(JsonMemberFinder, KnowsAKeyThatIsWrittenWithEscapes) {
  EXPECT_EQ(Find(R"({"\u0075\u0073\u0061\u0067\u0065":1})"), "1");
  EXPECT_EQ(Find(R"({"\u0075\u0073\u0061\u0067\u0065\u0065":1})"), "nothing");
  EXPECT_EQ(Find(R"({"usages":1,"usag":2})"), "nothing");
}

TEST(JsonMemberFinder, LetsTheLastOfSeveralCount) {
  EXPECT_EQ(Find(R"({"usage":{"a":1},"usage":null})"), "null");
}

TEST(JsonMemberFinder, FindsNothingBeforeTheObjectIsComplete) {
  EXPECT_EQ(Find(R"({"usage":{"a":1})"), "nothing");
  EXPECT_EQ(Find(R"({"usage":{"a":1}})"), R"({"a":1})");
}

TEST(JsonMemberFinder, FindsNothingInWhatIsNoObject) {
  for (const std::string_view document : {"", "[]", R"("usage")", R"([{"usage":1}])", "{}"}) {
    EXPECT_EQ(Find(document), "nothing") << document;
  }
}

TEST(JsonMemberFinder, KeepsNoValueThatIsTooLong) {
  const std::string longest(JsonMemberFinder::kMaxValue - 2, 'x');
  EXPECT_EQ(Find(R"({"usage":")" + longest + R"("})"), '"' + longest + '"');
  EXPECT_EQ(Find(R"({"usage":"x)" + longest + R"("})"), "nothing");
  EXPECT_EQ(Find(R"({"usage":"x)" + longest + R"(","usage":2})"), "2");
}

}  // namespace
}  // namespace fathom
