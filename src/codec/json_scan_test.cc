#include "codec/json_scan.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

using Members = std::vector<std::pair<std::string, std::string>>;

Result<Members> Scan(std::string_view document) {
  Members members;
  JsonScanner scanner(document);
  for (;;) {
    TRY(const std::optional<JsonScanner::Member> member, scanner.Next());
    if (!member) return members;
    members.emplace_back(member->key, member->value);
  }
}

std::string ErrorOf(std::string_view document) {
  const Result<Members> result = Scan(document);
  if (result) return "accepted";
  EXPECT_EQ(result.error().blame, Blame::kCaller);
  return result.error().what;
}

// {"a": <value>}
bool Accepts(std::string_view value) {
  return Scan(fmt::format("{{\"a\":{}}}", value)).has_value();
}

std::vector<std::string> Elements(std::string_view array) {
  std::vector<std::string> out;
  JsonElements elements(array);
  while (const auto element = elements.Next()) out.emplace_back(*element);
  return out;
}

TEST(JsonScanner, YieldsTheTopLevelMembersInOrder) {
  const auto members =
      Scan(" {\"model\" : \"m\" ,\n\"n\":[1, {\"x\":2}],\"o\":{\"model\":\"no\"},\"t\":true}\t");
  ASSERT_TRUE(members);
  EXPECT_THAT(*members, ElementsAre(Pair("model", "\"m\""), Pair("n", "[1, {\"x\":2}]"),
                                    Pair("o", "{\"model\":\"no\"}"), Pair("t", "true")));
}

TEST(JsonScanner, HasNothingToSayAboutAnEmptyObject) {
  ASSERT_TRUE(Scan("{}"));
  EXPECT_THAT(*Scan(" { } "), IsEmpty());
}

TEST(JsonScanner, KeepsSayingThatItIsAtTheEnd) {
  JsonScanner scanner("{\"a\":1}");
  EXPECT_TRUE(scanner.Next().value());
  EXPECT_FALSE(scanner.Next().value());
  EXPECT_FALSE(scanner.Next().value());
}

TEST(JsonScanner, NamesThePlaceOfAMistake) {
  EXPECT_EQ(ErrorOf("[1]"), "invalid JSON at byte 0: expected an object");
  EXPECT_EQ(ErrorOf("{\"a\":1,}"), "invalid JSON at byte 7: expected a string");
  EXPECT_EQ(ErrorOf("{\"a\" 1}"), "invalid JSON at byte 5: expected ':'");
  EXPECT_EQ(ErrorOf("{\"a\":1} x"), "invalid JSON at byte 8: unexpected bytes after the object");
  EXPECT_EQ(ErrorOf("{\"a\":[1 2]}"), "invalid JSON at byte 8: expected ',' or ']'");
  EXPECT_EQ(ErrorOf("{\"a\":{\"b\":1]}"), "invalid JSON at byte 11: expected ',' or '}'");
  EXPECT_EQ(ErrorOf("{\"a\":\"\n\"}"), "invalid JSON at byte 6: control byte in a string");
}

TEST(JsonScanner, RefusesEveryPrefixOfADocument) {
  const std::string_view document =
      "{\"a\":[1,-2.5e+3,\"x\\u00e9\\n\",{\"b\":null,\"c\":[true,false,{}]}],\"d\":\"long enough "
      "for "
      "sixteen\"}";
  ASSERT_EQ(ErrorOf(document), "accepted");
  for (size_t length = 0; length < document.size(); ++length) {
    EXPECT_NE(ErrorOf(document.substr(0, length)), "accepted") << length;
  }
}

TEST(JsonScanner, KnowsNumbers) {
  for (const std::string_view number : {"0", "-0", "10", "1.5", "-1.25e10", "1E-2", "1e+2", "0.0",
                                        "123456789012345678901234567890"}) {
    EXPECT_TRUE(Accepts(number)) << number;
  }
  for (const std::string_view number : {"01", "-", "+1", "1.", ".5", "1e", "1e+", "0x1", "1_0",
                                        "--1", "NaN", "Infinity", "1 2", "00"}) {
    EXPECT_FALSE(Accepts(number)) << number;
  }
}

TEST(JsonScanner, KnowsLiterals) {
  for (const std::string_view word : {"True", "tru", "nul", "truee", "undefined", "'a'", ""}) {
    EXPECT_FALSE(Accepts(word)) << word;
  }
}

TEST(JsonScanner, ChecksStringsByteByByteWhereverTheByteIs) {
  for (int byte = 0; byte < 256; ++byte) {
    for (const size_t at : {0, 15, 16, 37}) {
      std::string text(38, 's');
      text[at] = static_cast<char>(byte);
      const bool allowed = byte >= 0x20 && byte != '"' && byte != '\\';
      EXPECT_EQ(Accepts('"' + text + '"'), allowed) << byte << " at " << at;
    }
  }
}

TEST(JsonScanner, KnowsEscapes) {
  EXPECT_TRUE(Accepts(R"("\"\\\/\b\f\n\r\t\u12aB")"));
  for (const std::string_view text :
       {R"("\x")", R"("\u12")", R"("\u12g4")", R"("\")", R"("\U1234")"}) {
    EXPECT_FALSE(Accepts(text)) << text;
  }
}

// The sixteen-byte path over integers must agree with the plain one, which a leading string forces.
TEST(JsonScanner, ChecksIntegersAloneAndAmongOthersAlike) {
  const std::string good = "101, 2023,2003, 0,1037, 3231, 102, 7,128000";
  const std::string_view wrong[] = {",", " ", "0", "1", "x", "-", ".", "\n", "]", ",0", "  "};
  for (size_t at = 0; at <= good.size(); ++at) {
    for (const std::string_view extra : wrong) {
      std::string list = good + "," + good;
      list.insert(at, extra);
      EXPECT_EQ(Accepts("[" + list + "]"), Accepts("[\"\"," + list + "]")) << list;
    }
  }
  EXPECT_TRUE(Accepts("[" + good + "," + good + "]"));
}

TEST(JsonScanner, LimitsDepth) {
  const auto nested = [](size_t depth) {  // counting the object around it
    return std::string(depth - 1, '[') + std::string(depth - 1, ']');
  };
  EXPECT_TRUE(Accepts(nested(JsonScanner::kMaxDepth)));
  EXPECT_FALSE(Accepts(nested(JsonScanner::kMaxDepth + 1)));
  EXPECT_FALSE(Accepts(std::string(1'000'000, '[')));
}

TEST(JsonScanner, RemembersWhatIsOpenAtEveryDepth) {
  std::string open, close;
  for (int i = 0; i < 200; ++i) {
    const bool object = (i * 7 % 3) == 0;
    open += object ? "{\"k\":" : "[";
    close.insert(0, object ? "}" : "]");
  }
  EXPECT_TRUE(Accepts(open + "1" + close));
  for (size_t i = 0; i < close.size(); ++i) {
    std::string wrong = close;
    wrong[i] = wrong[i] == ']' ? '}' : ']';
    EXPECT_FALSE(Accepts(open + "1" + wrong)) << i;
  }
}

TEST(JsonKeyIs, SeesThroughEscapes) {
  EXPECT_TRUE(JsonKeyIs("model", "model"));
  EXPECT_TRUE(JsonKeyIs(R"(mod\u0065l)", "model"));
  EXPECT_TRUE(JsonKeyIs(R"(\u006D\u006f\u0064el)", "model"));
  EXPECT_TRUE(JsonKeyIs(R"(a\/b)", "a/b"));
  EXPECT_FALSE(JsonKeyIs("Model", "model"));
  EXPECT_FALSE(JsonKeyIs(R"(model\u0000)", "model"));
  EXPECT_FALSE(JsonKeyIs(R"(\ud800)", ""));
}

TEST(JsonText, UnescapesStrings) {
  EXPECT_EQ(JsonText(R"("a\n\"\\\/\b\f\r\t")"), "a\n\"\\/\b\f\r\t");
  EXPECT_EQ(JsonText(R"("\u0041\u00e9\u20AC\ud83d\ude00")"), "A\u00e9\u20ac\U0001f600");
  EXPECT_EQ(JsonText(R"("\u0000")"), std::string(1, '\0'));
  EXPECT_EQ(JsonText("\"\""), "");
}

TEST(JsonText, HasNoneForOtherValuesAndLoneSurrogates) {
  for (const std::string_view value :
       {"1", "null", "[\"a\"]", "", "\"", R"("\ud800")", R"("\udc00")", R"("\ud800\u0041")",
        R"("\ud800x")", R"("\)", R"("\u12")"}) {
    EXPECT_EQ(JsonText(value), std::nullopt) << value;
  }
}

TEST(JsonElements, WalksAnArray) {
  EXPECT_THAT(Elements("[ 1 , \"a,]\" ,[2,3], {\"b\":[4]} ]"),
              ElementsAre("1", "\"a,]\"", "[2,3]", "{\"b\":[4]}"));
  EXPECT_THAT(Elements("[]"), IsEmpty());
  EXPECT_THAT(Elements("[ ]"), IsEmpty());
  EXPECT_THAT(Elements("{\"a\":1}"), IsEmpty());
  EXPECT_THAT(Elements(""), IsEmpty());
}

TEST(JsonScan, ComparesTheBeginningOfAKeyAfterUnescaping) {
  EXPECT_TRUE(JsonKeyStartsWith("bootstrap_room", "bootstrap_"));
  EXPECT_TRUE(JsonKeyStartsWith(R"(boot\u0073trap_room)", "bootstrap_"));
  EXPECT_FALSE(JsonKeyStartsWith("bootstrap", "bootstrap_"));
  EXPECT_FALSE(JsonKeyStartsWith(R"(bootstrap_\ud800)", "bootstrap_"));
}

}  // namespace
}  // namespace fathom
