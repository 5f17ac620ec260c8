#include <gtest/gtest.h>

#include "testing/expression_cases.h"

namespace fathom {
namespace {

// What jinja2 prints for each.
constexpr ExpressionCase kPredicateCases[] = {
    {"d['keys'] is defined", "True"},
    {"d.zz is defined", "False"},
    {"l.append is defined", "False"},
    {"(s if e) is defined", "False"},
    {"s is string", "True"},
    {"n is number", "True"},
    {"t is number", "True"},
    {"t is integer", "False"},
    {"n is integer", "True"},
    {"f is float", "True"},
    {"d is mapping", "True"},
    {"l is sequence", "True"},
    {"s is sequence", "True"},
    {"d is sequence", "True"},
    {"l is iterable", "True"},
    {"n is iterable", "False"},
    {"none is none", "True"},
    {"e is none", "False"},
    {"undefinedvar is none", "False"},
    {"undefinedvar is undefined", "True"},
    {"n is odd", "True"},
    {"n is even", "False"},
    {"n is divisibleby 5", "True"},
    {"n is divisibleby(2)", "False"},
    {"n is eq 5", "True"},
    {"n is gt 3 and n is lt 10", "True"},
    {"n is in l", "False"},
    {"1 is in(l)", "True"},
    {"n is sameas 5", "True"},
    {"none is sameas none", "True"},
    {"s is upper", "False"},
    {"s is lower", "False"},
    {"'abc' is lower", "True"},
    {"t is true", "True"},
    {"t is boolean", "True"},
    {"e is false", "False"},
    {"n is not odd", "False"},
    {"n is callable", "False"},
    {"range is callable", "True"},
    {"namespace().x is defined", "False"},
    {"loop is defined", "False"},
    {"l is eq [3,1,2]", "True"},
    {"3 is ge 3", "True"},
    {"undefinedvar is iterable", "True"},
    {"undefinedvar is sequence", "True"},
    {"undefinedvar is mapping", "False"},
    {"undefinedvar is string", "False"},
    {"undefinedvar is callable", "True"},
    {"n is string", "False"},
    {"'a' is in 'abc'", "True"},
    {"['x'] is in [['x']]", "True"},
};

TEST(Predicate, SaysWhatJinja2Says) {
  for (const auto& [expression, expected] : kPredicateCases) {
    EXPECT_EQ(Evaluated(expression), expected) << expression;
  }
}

}  // namespace
}  // namespace fathom
