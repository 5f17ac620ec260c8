#include <gtest/gtest.h>

#include "testing/expression_cases.h"

namespace fathom {
namespace {

// What jinja2 prints for each.
constexpr ExpressionCase kListFiltersCases[] = {
    {"s|length", "11"},
    {"u|length", "10"},
    {"l|length", "3"},
    {"d|length", "3"},
    {"undefinedvar|length", "0"},
    {"d.items()|list", "[('a', 1), ('b', {'c': [1, 2]}), ('items', 'x')]"},
    {"d.keys()|list", "['a', 'b', 'items']"},
    {"ls|join(', ')", "b, A, c"},
    {"l|join('-')", "3-1-2"},
    {"ld|join(',', attribute='r')", "u,A,u,"},
    {"s|join('.')", "H.e.l.l.o. .W.o.r.l.d"},
    {"d|join(',')", "a,b,items"},
    {"l|first", "3"},
    {"l|last", "2"},
    {"e|first", ""},
    {"s|first", "H"},
    {"s|last", "d"},
    {"[]|last", ""},
    {"l|sum", "6"},
    {"ld[:3]|sum(attribute='v')", "6"},
    {"ld[:3]|sum('v', 10)", "16"},
    {"l|reverse|list", "[2, 1, 3]"},
    {"s|reverse", "dlroW olleH"},
    {"{'B':1,'a':2}|items|list", "[('B', 1), ('a', 2)]"},
    {"d|items|list", "[('a', 1), ('b', {'c': [1, 2]}), ('items', 'x')]"},
    {"undefinedvar|items|list", "[]"},
    {"l|batch(2)|list", "[[3, 1], [2]]"},
    {"l|batch(2,'x')|list", "[[3, 1], [2, 'x']]"},
    {"l|slice(2)|list", "[[3, 1], [2]]"},
    {"[1,2,3,4,5]|slice(3,'x')|list", "[[1, 2], [3, 4], [5, 'x']]"},
    {"no|default('x')", "None"},
    {"undefinedvar|default('x')", "x"},
    {"e|default('x')", ""},
    {"e|default('x',true)", "x"},
    {"undefinedvar|d", ""},
    {"no|d('q',true)", "q"},
    {"l|list", "[3, 1, 2]"},
    {"s|list", "['H', 'e', 'l', 'l', 'o', ' ', 'W', 'o', 'r', 'l', 'd']"},
    {"d|list", "['a', 'b', 'items']"},
    {"undefinedvar|list", "[]"},
    {"range(3)|list", "[0, 1, 2]"},
    {"range(1,10,3)|list", "[1, 4, 7]"},
    {"range(5,0,-2)|list", "[5, 3, 1]"},
    {"range(3)|length", "3"},
    {"range(3)|join(',')", "0,1,2"},
    {"s|length > 3", "True"},
    {"s|length + 1", "12"},
    {"l|length is eq 3", "True"},
    {"d.b.c|sum", "3"},
    {"ld|length", "4"},
    {"ld|last", "{'x': 1}"},
    {"[]|first is defined", "False"},
    {"l|first is defined", "True"},
    {"d|first", "a"},
    {"'abc'|list|join('|')", "a|b|c"},
    {"none|default('a', true)", "a"},
    {"{}|length", "0"},
    {"'é'|length", "1"},
    {"undefinedvar|join", ""},
    {"undefinedvar|first", ""},
    {"undefinedvar|sum", "0"},
    {"undefinedvar|default(undefinedvar2)|default(3)", "3"},
    {"undefinedvar|reverse|list", "[]"},
    {"undefinedvar|batch(2)|list", "[]"},
    {"d.items()|length", "3"},
    {"d.keys()|first", "a"},
    {"d.values()|list|length", "3"},
    {"(d.items()|list)[0][1]", "1"},
    {"(1,2)|list", "[1, 2]"},
    {"(1,2)|join", "12"},
};

TEST(ListFilters, SaysWhatJinja2Says) {
  for (const auto& [expression, expected] : kListFiltersCases) {
    EXPECT_EQ(Evaluated(expression), expected) << expression;
  }
}

TEST(ListFilters, FailsWhereJinja2Raises) {
  for (const char* expression : {"none|list", "n|list", "range(100001)|length", "no|length",
                                 "n|length", "no|join", "no|list", "no|first", "n|first"}) {
    EXPECT_TRUE(Evaluated(expression).starts_with("error: line 1: ")) << expression;
  }
}

}  // namespace
}  // namespace fathom
