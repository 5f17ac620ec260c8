#include "lab/mock/python_words.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fathom {
namespace {

TEST(PythonText, QuotesAsReprDoes) {
  EXPECT_EQ(PythonText("abc"), "'abc'");
  EXPECT_EQ(PythonText("it's"), "\"it's\"");
  EXPECT_EQ(PythonText("both ' and \""), "'both \\' and \"'");
  EXPECT_EQ(PythonText("a\\b\n\t\x01"), "'a\\\\b\\n\\t\\x01'");
}

TEST(PythonFloat, HasAPointOrAnExponent) {
  EXPECT_EQ(PythonFloat(3), "3.0");
  EXPECT_EQ(PythonFloat(-0.5), "-0.5");
  EXPECT_EQ(PythonFloat(1e20), "1e+20");
  EXPECT_EQ(PythonFloat(HUGE_VAL), "inf");
}

// Each answer is what json.loads() says.
TEST(ExplainJson, FindsTheFirstThingThatPythonDoesNotAccept) {
  struct Case {
    const char* document;
    const char* message;
    size_t position;
  };
  const Case cases[] = {
      {"{", "Expecting property name enclosed in double quotes", 1},
      {"{'a': 1}", "Expecting property name enclosed in double quotes", 1},
      {R"({"a": 1,})", "Expecting property name enclosed in double quotes", 8},
      {R"({"a": })", "Expecting value", 6},
      {R"({"a" 1})", "Expecting ':' delimiter", 5},
      {R"({"a": 1 "b": 2})", "Expecting ',' delimiter", 8},
      {"[1, 2", "Expecting ',' delimiter", 5},
      {R"({"a": "mock)", "Unterminated string starting at", 6},
      {R"({"n": 01})", "Expecting ',' delimiter", 7},
      {R"({"a": 1} x)", "Extra data", 9},
      {"nope", "Expecting value", 0},
      {"\"\xc3\xbc\" x", "Extra data", 4},
      {R"(["\x"])", "Invalid \\escape", 2},
  };
  for (const Case& one : cases) {
    const PythonJsonError error = ExplainJson(one.document);
    EXPECT_EQ(error.message, one.message) << one.document;
    EXPECT_EQ(error.position, one.position) << one.document;
  }
}

TEST(ExplainJson, HasNothingAgainstADocument) {
  for (const char* document : {"{}", " [1, -2.5e3, null, true, \"a\\u00fc\"] ", "7", "\"x\""}) {
    EXPECT_EQ(ExplainJson(document).message, "") << document;
  }
}

TEST(ExplainJson, EndsOnADocumentOfAnyDepth) {
  EXPECT_NE(ExplainJson(std::string(100'000, '[')).message, "");
}

}  // namespace
}  // namespace fathom
