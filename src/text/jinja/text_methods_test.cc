#include <gtest/gtest.h>

#include "testing/expression_cases.h"

namespace fathom {
namespace {

// What jinja2 prints for each.
constexpr ExpressionCase kTextMethodsCases[] = {
    {"l.index(2)", "2"},
    {"l.count(1)", "1"},
    {"s.replace('l','L',2)", "HeLLo World"},
    {"ws.strip()", "x y  z"},
    {"ws.lstrip()", "x y  z \t\n"},
    {"ws.rstrip()", "  x y  z"},
    {"s.strip('Hd')", "ello Worl"},
    {"s.split()", "['Hello', 'World']"},
    {"ws.split()", "['x', 'y', 'z']"},
    {"s.split('l')", "['He', '', 'o Wor', 'd']"},
    {"s.split('l',1)", "['He', 'lo World']"},
    {"s.rsplit('l',1)", "['Hello Wor', 'd']"},
    {"ws.split(none, 1)", "['x', 'y  z \\t\\n']"},
    {"ws.rsplit(none, 1)", "['  x y', 'z']"},
    {"multi.splitlines()", "['a', 'b', '', 'c', 'd']"},
    {"multi.splitlines(true)", "['a\\n', 'b\\n', '\\n', 'c\\r\\n', 'd']"},
    {"s.startswith('He')", "True"},
    {"s.startswith(('x','He'))", "True"},
    {"s.endswith('ld')", "True"},
    {"s.startswith('l', 2)", "True"},
    {"s.endswith('l', 0, 4)", "True"},
    {"s.find('l')", "2"},
    {"s.find('zz')", "-1"},
    {"u.find('ß')", "6"},
    {"s.rfind('l')", "9"},
    {"s.count('l')", "3"},
    {"u.count('')", "11"},
    {"', '.join(ls)", "b, A, c"},
    {"s.title()", "Hello World"},
    {"s.capitalize()", "Hello world"},
    {"s.swapcase()", "hELLO wORLD"},
    {"u.swapcase()", "HÉLLO SS 你好"},
    {"'123'.isdigit()", "True"},
    {"'12a'.isalnum()", "True"},
    {"'abc'.isalpha()", "True"},
    {"' \\t'.isspace()", "True"},
    {"'ABC'.isupper()", "True"},
    {"'abc1'.islower()", "True"},
    {"s.removeprefix('He')", "llo World"},
    {"s.removesuffix('ld')", "Hello Wor"},
    {"'42'.zfill(5)", "00042"},
    {"'-42'.zfill(5)", "-0042"},
    {"s.partition(' ')", "('Hello', ' ', 'World')"},
    {"s.rpartition('l')", "('Hello Wor', 'l', 'd')"},
    {"s.partition('zz')", "('Hello World', '', '')"},
    {"s.rpartition('zz')", "('', '', 'Hello World')"},
    {"s.upper()[0:3].lower()", "hel"},
    {"ls[1].lower()", "a"},
    {"'x'.isupper() or 'y'", "y"},
    {"'a,b,,c'.split(',')", "['a', 'b', '', 'c']"},
    {"'a b'.splitlines()", "['a', 'b']"},
    {"'ΑΣ'.lower()", "ας"},
    {"'ß'.upper()", "SS"},
    {"'ǆ'.title()", "ǅ"},
    {"\"they're bill's\".title()", "They'Re Bill'S"},
    {"s.split(sep='l')", "['He', '', 'o Wor', 'd']"},
    {"s.split(sep='o', maxsplit=1)", "['Hell', ' World']"},
    {"'a'.center(5,'*')", "**a**"},
    {"'ab'.center(5)", "  ab "},
    {"'a'.rjust(3)", "  a"},
    {"'abc'.isascii()", "True"},
};

TEST(TextMethods, SaysWhatJinja2Says) {
  for (const auto& [expression, expected] : kTextMethodsCases) {
    EXPECT_EQ(Evaluated(expression), expected) << expression;
  }
}

TEST(TextMethods, FailsWhereJinja2Raises) {
  for (const char* expression :
       {"s.split('')", "s.startswith(['He'])", "s.index('zz')", "', '.join(l)", "''.join(['a', 1])",
        "'abc'.replace('b')", "s.upper(1)"}) {
    EXPECT_TRUE(Evaluated(expression).starts_with("error: line 1: ")) << expression;
  }
}

}  // namespace
}  // namespace fathom
