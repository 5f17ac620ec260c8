#include "text/tokens/token_ids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/random.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<TokenId> Read(std::string_view array) {
  std::vector<TokenId> ids;
  const auto read = AppendTokenIds(array, ids);
  EXPECT_TRUE(read) << array << ": " << (read ? "" : read.error().what);
  return ids;
}

TEST(TokenIds, AreReadInEveryFormThatJsonAllows) {
  EXPECT_THAT(Read("[]"), IsEmpty());
  EXPECT_THAT(Read(" [ \n] "), IsEmpty());
  EXPECT_THAT(Read("[7]"), ElementsAre(7));
  EXPECT_THAT(Read("[1,2,3]"), ElementsAre(1, 2, 3));
  EXPECT_THAT(Read("\t[ 1 ,\r\n2,  3 ]\n"), ElementsAre(1, 2, 3));
  EXPECT_THAT(Read("[0,0, 10,100000,9999999,12345678,4294967295, 0]"),
              ElementsAre(0, 0, 10, 100000, 9999999, 12345678, 4294967295u, 0));
}

TEST(TokenIds, AreReadBackHoweverManyDigitsTheyHaveAndHoweverTheyAreSpaced) {
  Random random(4);
  for (int round = 0; round < 500; ++round) {
    std::vector<TokenId> ids(random.Below(1500));
    std::string text = "[";
    const bool regular = random.Below(2) == 0;
    for (TokenId& id : ids) {
      id = static_cast<TokenId>(random.Next() >> (32 + random.Below(32)));
      if (text.size() > 1) text += regular ? ", " : ",";
      if (!regular) text.append(random.Below(3), ' ');
      text += std::to_string(id);
      if (!regular && random.Below(8) == 0) text += '\n';
    }
    text += ']';
    ASSERT_EQ(Read(text), ids) << text;
  }
}

// Wherever it stands: the first ids of a long list are read eight bytes at a time, its last ones
// byte by byte.
TEST(TokenIds, AreRefusedWithAnythingElseAmongThem) {
  const std::string many = "1, 22, 333, 4444, 55555, 666666";
  for (const char* wrong : {"-1",       "-0",         "1.0",
                            "1e2",      "01",         "00",
                            "0000001",  "4294967296", "18446744073709551617",
                            "[1]",      "{}",         "\"1\"",
                            "null",     "true",       "",
                            " ",        "1 2",        "+1",
                            "0x1",      "1,",         ",",
                            "\x31\x80", "/",          ":",
                            "1:",       "12/",        "\xb1"}) {
    const std::string element = wrong;
    for (const std::string& array :
         {"[" + element + "," + many + "]", "[" + many + "," + element + "," + many + "]",
          "[" + many + ", " + element + "]", "[" + many + ", " + element}) {
      std::vector<TokenId> ids = {5};
      const auto read = AppendTokenIds(array, ids);
      ASSERT_FALSE(read) << array;
      EXPECT_EQ(read.error().blame, Blame::kCaller);
      EXPECT_THAT(ids, ElementsAre(5)) << "nothing is left of a list that is refused";
    }
  }
}

TEST(TokenIds, AreRefusedWhereThereIsNoWholeArray) {
  for (const char* text : {"", " ", "7", "[", "[1", "[1,", "[1,]", "[,1]", "]", "[1]]", "[1] 2",
                           "[1],", "{\"a\":[1]}", "[1}", "\"[1]\""}) {
    std::vector<TokenId> ids;
    EXPECT_FALSE(AppendTokenIds(text, ids)) << text;
  }
}

TEST(TokenIds, AreAppendedToWhatIsThere) {
  std::vector<TokenId> ids = {1};
  ASSERT_TRUE(AppendTokenIds("[2,3]", ids));
  ASSERT_TRUE(AppendTokenIds("[4]", ids));
  EXPECT_THAT(ids, ElementsAre(1, 2, 3, 4));
}

TEST(TokenIds, AreAtMostAsManyAsTheCallerWants) {
  std::string text = "[1";
  for (int i = 1; i < 1000; ++i) text += ",1";
  text += ']';
  std::vector<TokenId> ids;
  const auto read = AppendTokenIds(text, ids, 999);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().what, HasSubstr("too many"));
  EXPECT_THAT(ids, IsEmpty());
  EXPECT_TRUE(AppendTokenIds(text, ids, 1000));
  EXPECT_EQ(ids.size(), 1000u);
}

TEST(TokenIds, OfARefusedListAreNamedByTheirPlace) {
  std::vector<TokenId> ids;
  EXPECT_THAT(AppendTokenIds("[1, 2, x]", ids).error().what, HasSubstr("at byte 7"));
}

TEST(TokenIds, AreReadBehindABracketThatStandsBehindSpace) {
  std::string text = std::string(20, '\n') + "[71434";
  std::vector<TokenId> expected = {71434};
  for (TokenId id = 1; id < 40; ++id) {
    text += "," + std::to_string(id);
    expected.push_back(id);
  }
  std::vector<TokenId> ids;
  ASSERT_TRUE(AppendTokenIds(text + "]", ids));
  EXPECT_EQ(ids, expected);
}

}  // namespace
}  // namespace fathom
