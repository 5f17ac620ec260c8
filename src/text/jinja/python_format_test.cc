#include <gtest/gtest.h>

#include "testing/expression_cases.h"

namespace fathom {
namespace {

// What jinja2 prints for each.
constexpr ExpressionCase kPythonFormatCases[] = {
    {"'{} {}'.format(1,'a')", "1 a"},
    {"'{0} {1} {0}'.format(1,'a')", "1 a 1"},
    {"'{x:>5}|{y:<5}|{z:^5}'.format(x=1,y='a',z='b')", "    1|a    |  b  "},
    {"'{:.2f} {:05d} {:,} {:x} {:e}'.format(3.14159, 42, 1234567, 255, 12345.678)",
     "3.14 00042 1,234,567 ff 1.234568e+04"},
    {"'{!r}'.format('a')", "'a'"},
    {"'{{}}'.format()", "{}"},
    {"'%s %d %.2f %5s|%-5s|%05d %r %%' % ('a', 3, 2.5, 'x', 'y', 42, 'q')",
     "a 3 2.50     x|y    |00042 'q' %"},
    {"'%s' % s", "Hello World"},
    {"'%s' % l", "[3, 1, 2]"},
    {"'%(a)s' % d", "1"},
    {"'%d' % 2.7", "2"},
    {"'%x %X %o' % (255,255,8)", "ff FF 10"},
    {"'%s %s'|format('a', 1)", "a 1"},
    {"'%(x)s'|format(x=3)", "3"},
    {"'%+d % d' % (3, 4)", "+3  4"},
    {"'%e %g' % (12345.678, 0.0001)", "1.234568e+04 0.0001"},
    {"'%5.1f|' % 3.14159", "  3.1|"},
    {"'%s' % none", "None"},
    {"'%s' % undefinedvar", ""},
    {"'%5d|' % 42", "   42|"},
    {"'%-5d|' % 42", "42   |"},
    {"'%.3s|' % 'abcdef'", "abc|"},
    {"'%i' % 3", "3"},
    {"'%s' % true", "True"},
    {"'%s' % 1.0", "1.0"},
    {"'%f' % 1", "1.000000"},
    {"'%d%%' % 50", "50%"},
    {"'%.0f' % 2.5", "2"},
    {"'%g' % 1e20", "1e+20"},
    {"'%e' % 0", "0.000000e+00"},
    {"'{:s}'.format('a')", "a"},
    {"'{:10}|'.format('a')", "a         |"},
    {"'{:10}|'.format(1)", "         1|"},
    {"'{:+}'.format(1)", "+1"},
    {"'{:%}'.format(0.5)", "50.000000%"},
    {"'{:g}'.format(1.5)", "1.5"},
    {"'{}'.format(none)", "None"},
    {"'{}'.format(l)", "[3, 1, 2]"},
    {"'{:5}'.format(true)", "    1"},
    {"'{:d}'.format(true)", "1"},
};

TEST(PythonFormat, SaysWhatJinja2Says) {
  for (const auto& [expression, expected] : kPythonFormatCases) {
    EXPECT_EQ(Evaluated(expression), expected) << expression;
  }
}

TEST(PythonFormat, FailsWhereJinja2Raises) {
  for (const char* expression : {"'{'.format()", "'%s %s' % ('a',)", "'%s' % ('a','b')",
                                 "'%d' % 'a'", "'%' % ()", "'{:d}'.format(3.0)"}) {
    EXPECT_TRUE(Evaluated(expression).starts_with("error: line 1: ")) << expression;
  }
}

}  // namespace
}  // namespace fathom
