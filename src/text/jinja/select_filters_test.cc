#include <gtest/gtest.h>

#include "testing/expression_cases.h"

namespace fathom {
namespace {

// What jinja2 prints for each.
constexpr ExpressionCase kSelectFiltersCases[] = {
    {"ld|map(attribute='r')|list", "['u', 'A', 'u', Undefined]"},
    {"ld|map(attribute='r', default='zz')|list", "['u', 'A', 'u', 'zz']"},
    {"ls|map('upper')|list", "['B', 'A', 'C']"},
    {"ls|map('replace','A','q')|join(',')", "b,q,c"},
    {"l|map('string')|join", "312"},
    {"[1.5,'2']|map('int')|list", "[1, 2]"},
    {"ld|selectattr('r')|list", "[{'r': 'u', 'v': 2}, {'r': 'A', 'v': 1}, {'r': 'u', 'v': 3}]"},
    {"ld|selectattr('r','equalto','u')|list", "[{'r': 'u', 'v': 2}, {'r': 'u', 'v': 3}]"},
    {"ld|selectattr('r','defined')|map(attribute='r')|list", "['u', 'A', 'u']"},
    {"ld|selectattr('r','undefined')|list", "[{'x': 1}]"},
    {"ld|rejectattr('r','equalto','u')|list", "[{'r': 'A', 'v': 1}, {'x': 1}]"},
    {"ld|rejectattr('r')|list", "[{'x': 1}]"},
    {"l|select|list", "[3, 1, 2]"},
    {"l|select('odd')|list", "[3, 1]"},
    {"l|select('gt', 1)|list", "[3, 2]"},
    {"l|reject('odd')|list", "[2]"},
    {"l|select('in',[1,2])|list", "[1, 2]"},
    {"d|attr('a')", ""},
    {"ld|map('attr','keys')|list|length", "4"},
    {"undefinedvar|map('upper')|list", "[]"},
    {"[[1,2],[3,4]]|map('first')|list", "[1, 3]"},
    {"[[1,2],[3,4]]|map(attribute=1)|list", "[2, 4]"},
    {"[[1,2],[3,4]]|map(attribute='1')|list", "[2, 4]"},
    {"[{'a':{'b':5}}]|map(attribute='a.b')|list", "[5]"},
    {"[{'a':{'b':5}}]|selectattr('a.b','eq',5)|list", "[{'a': {'b': 5}}]"},
    {"ld|map(attribute='r')|join(',')", "u,A,u,"},
    {"ld|map(attribute='r')|select('defined')|join(',')", "u,A,u"},
    {"{'a':1}.items()|map('last')|sum", "1"},
};

TEST(SelectFilters, SaysWhatJinja2Says) {
  for (const auto& [expression, expected] : kSelectFiltersCases) {
    EXPECT_EQ(Evaluated(expression), expected) << expression;
  }
}

TEST(SelectFilters, FailsWhereJinja2Raises) {
  for (const char* expression : {"ld|selectattr('v','>',1)|list", "l|select|length"}) {
    EXPECT_TRUE(Evaluated(expression).starts_with("error: line 1: ")) << expression;
  }
}

}  // namespace
}  // namespace fathom
