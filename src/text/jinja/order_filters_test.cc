#include <gtest/gtest.h>

#include "testing/expression_cases.h"

namespace fathom {
namespace {

// What jinja2 prints for each.
constexpr ExpressionCase kOrderFiltersCases[] = {
    {"l|sort", "[1, 2, 3]"},
    {"ls|sort", "['A', 'b', 'c']"},
    {"ls|sort(true)", "['c', 'b', 'A']"},
    {"ls|sort(case_sensitive=true)", "['A', 'b', 'c']"},
    {"ls|sort(reverse=true)", "['c', 'b', 'A']"},
    {"ld[:3]|sort(attribute='v')", "[{'r': 'A', 'v': 1}, {'r': 'u', 'v': 2}, {'r': 'u', 'v': 3}]"},
    {"ld[:3]|sort(attribute='r,v')|list",
     "[{'r': 'A', 'v': 1}, {'r': 'u', 'v': 2}, {'r': 'u', 'v': 3}]"},
    {"l|max", "3"},
    {"l|min", "1"},
    {"[]|max", ""},
    {"ls|max", "c"},
    {"ld[:3]|max(attribute='v')", "{'r': 'u', 'v': 3}"},
    {"l|unique|list", "[3, 1, 2]"},
    {"ls|unique|list", "['b', 'A', 'c']"},
    {"['a','A','b']|unique|list", "['a', 'b']"},
    {"['a','A','b']|unique(case_sensitive=true)|list", "['a', 'A', 'b']"},
    {"d|dictsort", "[('a', 1), ('b', {'c': [1, 2]}), ('items', 'x')]"},
    {"{'B':1,'a':2}|dictsort", "[('a', 2), ('B', 1)]"},
    {"{'B':1,'a':2}|dictsort(true)", "[('B', 1), ('a', 2)]"},
    {"{'B':1,'a':2}|dictsort(by='value')", "[('B', 1), ('a', 2)]"},
    {"{'B':1,'a':2}|dictsort(reverse=true)", "[('B', 1), ('a', 2)]"},
    {"ld[:3]|groupby('r')",
     "[('A', [{'r': 'A', 'v': 1}]), ('u', [{'r': 'u', 'v': 2}, {'r': 'u', 'v': 3}])]"},
    {"ld[:3]|groupby('r')|map(attribute='grouper')|list", "['A', 'u']"},
    {"ld|groupby('r',default='zz')|list",
     "[('A', [{'r': 'A', 'v': 1}]), ('u', [{'r': 'u', 'v': 2}, {'r': 'u', 'v': 3}]), ('zz', [{'x': "
     "1}])]"},
    {"l|sort|first", "1"},
    {"l|sort(reverse=true)|join('>')", "3>2>1"},
    {"undefinedvar|sort", "[]"},
    {"d|dictsort|first", "('a', 1)"},
};

TEST(OrderFilters, SaysWhatJinja2Says) {
  for (const auto& [expression, expected] : kOrderFiltersCases) {
    EXPECT_EQ(Evaluated(expression), expected) << expression;
  }
}

TEST(OrderFilters, FailsWhereJinja2Raises) {
  for (const char* expression : {"ld|sort(attribute='v')", "[1,'a']|sort", "ld|groupby('r')|list",
                                 "undefinedvar|dictsort"}) {
    EXPECT_TRUE(Evaluated(expression).starts_with("error: line 1: ")) << expression;
  }
}

}  // namespace
}  // namespace fathom
