#include <gtest/gtest.h>

#include "testing/expression_cases.h"

namespace fathom {
namespace {

// What jinja2 prints for each.
constexpr ExpressionCase kPythonOperatorCases[] = {
    {"undefinedvar", ""},
    {"'a' ~ undefinedvar ~ 1 ~ none ~ 2.5 ~ true", "a1None2.5True"},
    {"n / 2", "2.5"},
    {"n // 2", "2"},
    {"neg // 2", "-4"},
    {"neg % 3", "2"},
    {"n % -3", "-1"},
    {"f // 2", "1.0"},
    {"f % 2", "0.5"},
    {"-f % 2", "1.5"},
    {"2 ** 3", "8"},
    {"2 ** -1", "0.5"},
    {"2 ** 0.5", "1.4142135623730951"},
    {"2 ** 62", "4611686018427387904"},
    {"+n", "5"},
    {"1/3", "0.3333333333333333"},
    {"s * 2", "Hello WorldHello World"},
    {"2 * s", "Hello WorldHello World"},
    {"l * 2", "[3, 1, 2, 3, 1, 2]"},
    {"l + [4]", "[3, 1, 2, 4]"},
    {"dict(a=1,b=2)", "{'a': 1, 'b': 2}"},
    {"dict({'a':1}, b=2)", "{'a': 1, 'b': 2}"},
    {"strftime_now('%Y-%m-%d %d %b %B %H:%M %j %p %y %%')",
     "2023-11-14 14 Nov November 22:13 318 PM 23 %"},
    {"1 + 2 * 3 - 4 / 2", "5.0"},
    {"(1 + 2) * 3", "9"},
    {"2 ** 3 ** 2", "64"},
    {"-2 ** 2", "4"},
    {"1 ~ 2", "12"},
    {"'a' ~ ['b']", "a['b']"},
    {"'\\u00e9\\U0001F30D\\101'", "é🌍A"},
    {"'a\\\nb'", "ab"},
    {"ns", ""},
    {"[1,2,3] | map('float') | sum", "6.0"},
    {"'a' * 0", ""},
    {"'a' * -1", ""},
    {"'a'.ljust(3) ~ '|'", "a  |"},
    {"t + t", "2"},
    {"t * 3", "3"},
};

TEST(PythonOperator, SaysWhatJinja2Says) {
  for (const auto& [expression, expected] : kPythonOperatorCases) {
    EXPECT_EQ(Evaluated(expression), expected) << expression;
  }
}

TEST(PythonOperator, FailsWhereJinja2Raises) {
  for (const char* expression : {"undefinedvar + 'a'", "l + (4,)", "s + 1", "s - 1", "none + 1",
                                 "range('a')", "undefinedvar()"}) {
    EXPECT_TRUE(Evaluated(expression).starts_with("error: line 1: ")) << expression;
  }
}

}  // namespace
}  // namespace fathom
