#include <gtest/gtest.h>

#include "testing/expression_cases.h"

namespace fathom {
namespace {

// What jinja2 prints for each.
constexpr ExpressionCase kNumberFiltersCases[] = {
    {"s|int", "0"},
    {"'42'|int", "42"},
    {"' 42 '|int", "42"},
    {"'4_2'|int", "42"},
    {"'42.7'|int", "42"},
    {"'abc'|int", "0"},
    {"'abc'|int(7)", "7"},
    {"'ff'|int(base=16)", "255"},
    {"2.9|int", "2"},
    {"none|int", "0"},
    {"t|int", "1"},
    {"'1e3'|int", "1000"},
    {"'1.5'|float", "1.5"},
    {"'x'|float", "0.0"},
    {"'x'|float(9)", "9"},
    {"n|float", "5.0"},
    {"'inf'|float", "inf"},
    {"2.5|round", "2.0"},
    {"3.5|round", "4.0"},
    {"2.675|round(2)", "2.67"},
    {"2.345|round(1,'ceil')", "2.4"},
    {"2.345|round(1,'floor')", "2.3"},
    {"n|round", "5"},
    {"15|round(-1)", "20"},
    {"25|round(-1)", "20"},
    {"-2.5|round", "-2.0"},
    {"n|abs", "5"},
    {"neg|abs", "7"},
    {"-2.5|abs", "2.5"},
    {"-n|abs", "5"},
    {"-1|abs", "1"},
    {"(-1)|abs", "1"},
};

TEST(NumberFilters, SaysWhatJinja2Says) {
  for (const auto& [expression, expected] : kNumberFiltersCases) {
    EXPECT_EQ(Evaluated(expression), expected) << expression;
  }
}

TEST(NumberFilters, FailsWhereJinja2Raises) {
  for (const char* expression : {"undefinedvar|int", "s|abs", "undefinedvar|float",
                                 "undefinedvar|abs", "undefinedvar|round"}) {
    EXPECT_TRUE(Evaluated(expression).starts_with("error: line 1: ")) << expression;
  }
}

}  // namespace
}  // namespace fathom
