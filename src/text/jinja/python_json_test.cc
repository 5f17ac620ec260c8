#include <gtest/gtest.h>

#include "testing/expression_cases.h"

namespace fathom {
namespace {

// What jinja2 prints for each.
constexpr ExpressionCase kPythonJsonCases[] = {
    {"d|tojson", "{\"a\": 1, \"b\": {\"c\": [1, 2]}, \"items\": \"x\"}"},
    {"deep|tojson", "[[1, [2, \"q'\"]], {\"k\": null}]"},
    {"d|tojson(indent=2)",
     "{\n  \"a\": 1,\n  \"b\": {\n    \"c\": [\n      1,\n      2\n    ]\n  },\n  \"items\": "
     "\"x\"\n}"},
    {"deep|tojson(indent=4)",
     "[\n    [\n        1,\n        [\n            2,\n            \"q'\"\n        ]\n    ],\n    "
     "{\n        \"k\": null\n    }\n]"},
    {"[]|tojson(indent=2)", "[]"},
    {"{}|tojson(indent=2)", "{}"},
    {"u|tojson", "\"héllo ß 你好\""},
    {"'\\n\\t\"\\\\/\\x01\\x7f<>&\\'é'|tojson", "\"\\n\\t\\\"\\\\/\\u0001\177<>&'é\""},
    {"u|tojson(ensure_ascii=true)", "\"h\\u00e9llo \\u00df \\u4f60\\u597d\""},
    {"'🌍'|tojson(ensure_ascii=true)", "\"\\ud83c\\udf0d\""},
    {"d|tojson(sort_keys=true)", "{\"a\": 1, \"b\": {\"c\": [1, 2]}, \"items\": \"x\"}"},
    {"d|tojson(separators=(',',':'))", "{\"a\":1,\"b\":{\"c\":[1,2]},\"items\":\"x\"}"},
    {"1.0|tojson", "1.0"},
    {"1e20|tojson", "1e+20"},
    {"t|tojson", "true"},
    {"none|tojson", "null"},
    {"(1,2)|tojson", "[1, 2]"},
    {"d|tojson(indent='\\t')",
     "{\n\t\"a\": 1,\n\t\"b\": {\n\t\t\"c\": [\n\t\t\t1,\n\t\t\t2\n\t\t]\n\t},\n\t\"items\": "
     "\"x\"\n}"},
    {"big|tojson", "18446744073709551615"},
    {"l|tojson|length", "9"},
    {"d.b|tojson", "{\"c\": [1, 2]}"},
    {"d.b.items()|list|tojson", "[[\"c\", [1, 2]]]"},
};

TEST(PythonJson, SaysWhatJinja2Says) {
  for (const auto& [expression, expected] : kPythonJsonCases) {
    EXPECT_EQ(Evaluated(expression), expected) << expression;
  }
}

TEST(PythonJson, FailsWhereJinja2Raises) {
  for (const char* expression :
       {"undefinedvar|tojson", "d.items()|tojson", "l|map('string')|tojson"}) {
    EXPECT_TRUE(Evaluated(expression).starts_with("error: line 1: ")) << expression;
  }
}

}  // namespace
}  // namespace fathom
