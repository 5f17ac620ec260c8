#include <gtest/gtest.h>

#include "testing/expression_cases.h"

namespace fathom {
namespace {

// What jinja2 prints for each.
constexpr ExpressionCase kTextFiltersCases[] = {
    {"s|upper", "HELLO WORLD"},
    {"s|lower", "hello world"},
    {"s|title", "Hello World"},
    {"u|title", "Héllo SS 你好"},
    {"u|upper", "HÉLLO SS 你好"},
    {"u|capitalize", "Héllo ß 你好"},
    {"big|string", "18446744073709551615"},
    {"s|replace('l','L')", "HeLLo WorLd"},
    {"s|replace('l','L',1)", "HeLlo World"},
    {"s|replace('','-')", "-H-e-l-l-o- -W-o-r-l-d-"},
    {"n|replace('5','6')", "6"},
    {"ws|trim", "x y  z"},
    {"s|trim('Hd')", "ello Worl"},
    {"s|string", "Hello World"},
    {"n|string", "5"},
    {"l|string", "[3, 1, 2]"},
    {"none|string", "None"},
    {"multi|indent", "a\n    b\n\n    c\n    d"},
    {"multi|indent(2)", "a\n  b\n\n  c\n  d"},
    {"multi|indent(2,true)", "  a\n  b\n\n  c\n  d"},
    {"multi|indent(2,blank=true)", "a\n  b\n  \n  c\n  d"},
    {"multi|indent(width='> ', first=true)", "> a\n> b\n\n> c\n> d"},
    {"''|indent", ""},
    {"s|truncate(5)", "He..."},
    {"s|truncate(8)", "Hello World"},
    {"'foo bar baz qux quux'|truncate(9)", "foo..."},
    {"'foo bar baz qux quux'|truncate(9,true)", "foo ba..."},
    {"'foo bar baz qux quux'|truncate(9,true,'..')", "foo bar.."},
    {"'foo bar baz qux'|truncate(9,leeway=0)", "foo..."},
    {"s|wordcount", "2"},
    {"ws|wordcount", "3"},
    {"s|center(20)", "    Hello World     "},
    {"'<a href=\"x\">&\\'</a>'|e", "&lt;a href=&#34;x&#34;&gt;&amp;&#39;&lt;/a&gt;"},
    {"'<b>'|escape", "&lt;b&gt;"},
    {"s|safe", "Hello World"},
    {"s|upper|lower|title", "Hello World"},
    {"(s|upper)[0]", "H"},
    {"s|upper ~ 'x'", "HELLO WORLDx"},
    {"[l, d]|string", "[[3, 1, 2], {'a': 1, 'b': {'c': [1, 2]}, 'items': 'x'}]"},
    {"\"they're bill's\"|title", "They're Bill's"},
    {"'hello-world (foo) [bar]'|title", "Hello-World (Foo) [Bar]"},
    {"s ~ n|string", "Hello World5"},
    {"undefinedvar|string|length", "0"},
    {"undefinedvar|upper", ""},
    {"undefinedvar|trim", ""},
    {"undefinedvar|replace('a','b')", ""},
    {"undefinedvar|wordcount", "0"},
    {"undefinedvar|e", ""},
    {"no|upper", "NONE"},
    {"no|trim", "None"},
    {"l|upper", "[3, 1, 2]"},
    {"d|trim", "{'a': 1, 'b': {'c': [1, 2]}, 'items': 'x'}"},
    {"l|trim", "[3, 1, 2]"},
    {"n|trim", "5"},
    {"f|string", "2.5"},
    {"t|string|lower", "true"},
    {"t|lower", "true"},
};

TEST(TextFilters, SaysWhatJinja2Says) {
  for (const auto& [expression, expected] : kTextFiltersCases) {
    EXPECT_EQ(Evaluated(expression), expected) << expression;
  }
}

TEST(TextFilters, FailsWhereJinja2Raises) {
  for (const char* expression : {"n|indent", "s|upper(1)", "undefinedvar|indent"}) {
    EXPECT_TRUE(Evaluated(expression).starts_with("error: line 1: ")) << expression;
  }
}

}  // namespace
}  // namespace fathom
