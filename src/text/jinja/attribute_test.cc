#include <gtest/gtest.h>

#include "testing/expression_cases.h"

namespace fathom {
namespace {

// What jinja2 prints for each.
constexpr ExpressionCase kAttributeCases[] = {
    {"no.x", ""},
    {"d.a", "1"},
    {"d.items()", "dict_items([('a', 1), ('b', {'c': [1, 2]}), ('items', 'x')])"},
    {"d.keys()", "dict_keys(['a', 'b', 'items'])"},
    {"d.values()", "dict_values([1, {'c': [1, 2]}, 'x'])"},
    {"d.get('a')", "1"},
    {"d.get('zz')", "None"},
    {"d.get('zz', 3)", "3"},
    {"d['keys']()", "dict_keys(['a', 'b', 'items'])"},
    {"d.b.c[1]", "2"},
    {"namespace(a=1).a", "1"},
    {"namespace({'a':2}).a", "2"},
    {"namespace(a=1).b", ""},
    {"s.nope", ""},
    {"n.foo", ""},
    {"l.foo", ""},
    {"s['upper']()", "HELLO WORLD"},
    {"d['a'].b", ""},
    {"{'a':{'b':2}}.a.b", "2"},
    {"d.a.0", ""},
    {"s.0", "H"},
    {"n.__class__", ""},
    {"d.__class__", ""},
    {"d.items()[0]", ""},
};

TEST(Attribute, SaysWhatJinja2Says) {
  for (const auto& [expression, expected] : kAttributeCases) {
    EXPECT_EQ(Evaluated(expression), expected) << expression;
  }
}

TEST(Attribute, FailsWhereJinja2Raises) {
  for (const char* expression : {"undefinedvar.x", "no.x.y", "d.update({'x':1})", "l.append(1)",
                                 "s.nope()", "s.nope.more", "x.y.z", "s.__class__.__name__"}) {
    EXPECT_TRUE(Evaluated(expression).starts_with("error: line 1: ")) << expression;
  }
}

}  // namespace
}  // namespace fathom
