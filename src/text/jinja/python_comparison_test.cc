#include <gtest/gtest.h>

#include "testing/expression_cases.h"

namespace fathom {
namespace {

// What jinja2 prints for each.
constexpr ExpressionCase kPythonComparisonCases[] = {
    {"not n", "False"},
    {"n == 5.0", "True"},
    {"n == '5'", "False"},
    {"true == 1", "True"},
    {"1 < 2 < 3", "True"},
    {"1 < 3 < 2", "False"},
    {"'a' < 'b'", "True"},
    {"[1,2] < [1,3]", "True"},
    {"'ell' in s", "True"},
    {"'x' not in s", "True"},
    {"1 in l", "True"},
    {"'a' in d", "True"},
    {"1 in undefinedvar", "False"},
    {"undefinedvar == undefinedvar", "True"},
    {"undefinedvar == none", "False"},
    {"no == none", "True"},
    {"s and n", "5"},
    {"e or 'dflt'", "dflt"},
    {"e and 1", ""},
    {"none or undefinedvar or 0", "0"},
    {"s if t else 'no'", "Hello World"},
    {"s if e", ""},
    {"big == 18446744073709551615.0", "False"},
    {"not not t", "True"},
    {"not e and t", "True"},
    {"s == 'Hello World' and n != 5", "False"},
    {"1.0 == 1", "True"},
    {"1 == true", "True"},
    {"'1' == 1", "False"},
    {"[1,[2]] == [1,[2]]", "True"},
    {"{'a':1,'b':2} == {'b':2,'a':1}", "True"},
    {"(1,2) == [1,2]", "False"},
    {"0.1 + 0.2 == 0.3", "False"},
    {"9007199254740993 == 9007199254740992.0", "False"},
    {"true and 'yes' or 'no'", "yes"},
    {"undefinedvar in l", "False"},
    {"not undefinedvar", "True"},
    {"undefinedvar if undefinedvar else 'z'", "z"},
    {"'a' in d.keys()", "True"},
};

TEST(PythonComparison, SaysWhatJinja2Says) {
  for (const auto& [expression, expected] : kPythonComparisonCases) {
    EXPECT_EQ(Evaluated(expression), expected) << expression;
  }
}

TEST(PythonComparison, FailsWhereJinja2Raises) {
  for (const char* expression : {"'a' < 1", "none < 1", "none in s", "'a' in none",
                                 "undefinedvar in s", "undefinedvar > 1"}) {
    EXPECT_TRUE(Evaluated(expression).starts_with("error: line 1: ")) << expression;
  }
}

}  // namespace
}  // namespace fathom
