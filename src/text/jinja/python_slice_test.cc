#include <gtest/gtest.h>

#include "testing/expression_cases.h"

namespace fathom {
namespace {

// What jinja2 prints for each.
constexpr ExpressionCase kPythonSliceCases[] = {
    {"no['x']", ""},
    {"no[0]", ""},
    {"s[0]", "H"},
    {"s[-1]", "d"},
    {"u[1]", "é"},
    {"u[1:3]", "él"},
    {"u[::-1]", "好你 ß olléh"},
    {"u[-3:]", " 你好"},
    {"s[::2]", "HloWrd"},
    {"s[10:0:-3]", "dooe"},
    {"s[99]", ""},
    {"s[1.5]", ""},
    {"l[0]", "3"},
    {"l[-1]", "2"},
    {"l[9]", ""},
    {"l['a']", ""},
    {"l[1:]", "[1, 2]"},
    {"l[::-1]", "[2, 1, 3]"},
    {"l[:-1]", "[3, 1]"},
    {"l[5:1]", "[]"},
    {"l[true]", "1"},
    {"d['a']", "1"},
    {"d['items']", "x"},
    {"d['zz']", ""},
    {"['it\\'s', \"q\\\"\", 'both\\'\"', '\\n\\t\\x01é\\u200b']",
     "[\"it's\", 'q\"', 'both\\'\"', '\\n\\t\\x01é\\u200b']"},
    {"range(3)[1]", "1"},
    {"l[none:2]", "[3, 1]"},
    {"l['0']", ""},
    {"3 in [1, 2.0, 3.0]", "True"},
};

TEST(PythonSlice, SaysWhatJinja2Says) {
  for (const auto& [expression, expected] : kPythonSliceCases) {
    EXPECT_EQ(Evaluated(expression), expected) << expression;
  }
}

TEST(PythonSlice, FailsWhereJinja2Raises) {
  for (const char* expression : {"no[1:]", "l[::0]", "undefinedvar[0]"}) {
    EXPECT_TRUE(Evaluated(expression).starts_with("error: line 1: ")) << expression;
  }
}

}  // namespace
}  // namespace fathom
