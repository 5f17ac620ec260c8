#include <gtest/gtest.h>

#include "testing/expression_cases.h"

namespace fathom {
namespace {

// What jinja2 prints for each.
constexpr ExpressionCase kPythonTextCases[] = {
    {"-n", "-5"},
    {"-t", "-1"},
    {"[1,2,3]", "[1, 2, 3]"},
    {"(1,)", "(1,)"},
    {"()", "()"},
    {"(1,2)", "(1, 2)"},
    {"{'a': 1, \"b\": [true, none]}", "{'a': 1, 'b': [True, None]}"},
    {"deep", "[[1, [2, \"q'\"]], {'k': None}]"},
    {"'it\\'s'", "it's"},
    {"1.0", "1.0"},
    {"1e16", "1e+16"},
    {"1e15", "1000000000000000.0"},
    {"123456789012345678.0", "1.2345678901234568e+17"},
    {"0.0001", "0.0001"},
    {"0.00001", "1e-05"},
    {"1e-7", "1e-07"},
    {"1.5e300", "1.5e+300"},
    {"3.14159", "3.14159"},
    {"-0.0", "-0.0"},
    {"100000000000000000000.0", "1e+20"},
    {"1_000", "1000"},
    {"0.1+0.2", "0.30000000000000004"},
    {"big", "18446744073709551615"},
    {"(1,) + (2,)", "(1, 2)"},
    {"'a' 'b' \"c\"", "abc"},
    {"'a' if none", ""},
    {"[1,2][0]", "1"},
    {"{'a':1}['b']", ""},
    {"(1 if t else 2) + 1", "2"},
    {"10 - 3 - 2", "5"},
    {"'\\q'", "\\q"},
    {"\"tab\\tend\"", "tab\tend"},
    {"'abc'[5:]", ""},
    {"'abc'[-100:2]", "ab"},
    {"''[0]", ""},
    {"[10,20].0", "10"},
    {"[] + []", "[]"},
    {"0 or none", "None"},
    {"0.0 or 'z'", "z"},
    {"'' or [] or {} or 'end'", "end"},
    {"{'a': undefinedvar}", "{'a': Undefined}"},
    {"[undefinedvar]", "[Undefined]"},
    {"{s: 1}", "{'Hello World': 1}"},
    {"(1,2,3)[1:]", "(2, 3)"},
};

TEST(PythonText, SaysWhatJinja2Says) {
  for (const auto& [expression, expected] : kPythonTextCases) {
    EXPECT_EQ(Evaluated(expression), expected) << expression;
  }
}

TEST(PythonText, FailsWhereJinja2Raises) {
  for (const char* expression : {"1 + s", "-undefinedvar"}) {
    EXPECT_TRUE(Evaluated(expression).starts_with("error: line 1: ")) << expression;
  }
}

}  // namespace
}  // namespace fathom
