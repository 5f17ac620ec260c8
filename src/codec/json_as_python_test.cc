#include "codec/json_as_python.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace fathom {
namespace {

using Fault = PythonJsonFault;

std::string Written(std::string_view text) {
  const auto json = JsonAsPython(text);
  if (!json) return json.error() == Fault::kNotJson ? "not JSON" : "not supported";
  std::string out;
  json->WriteTo(out);
  return out;
}

double Number(std::string_view text) {
  const auto json = JsonAsPython(text);
  return json ? json->number().value_or(0) : 0;
}

TEST(JsonAsPython, KeepsEveryDigitOfAnInteger) {
  for (const char* const number :
       {"18446744073709551615", "18446744073709551616", "-9223372036854775809",
        "123456789012345678901234567890123456789012345678901234567890"}) {
    EXPECT_EQ(Written(number), number);
    EXPECT_EQ(Written(R"({"a":[)" + std::string(number) + R"(,"b"]})"),
              R"({"a":[)" + std::string(number) + R"(,"b"]})");
  }
  const std::string most(kMostPythonDigits, '7');
  EXPECT_EQ(Written(most), most);
  EXPECT_EQ(Written(most + "7"), "not supported");
}

TEST(JsonAsPython, ReadsNumbersThatNoOtherReaderTakes) {
  EXPECT_TRUE(std::isinf(Number("1E400")));
  EXPECT_EQ(Number("-1e400"), -INFINITY);
  EXPECT_TRUE(std::isnan(Number("NaN")));
  EXPECT_EQ(Number("[Infinity]"), 0);
  EXPECT_EQ(Number("Infinity"), INFINITY);
  EXPECT_EQ(Number("-Infinity"), -INFINITY);
  EXPECT_EQ(Written(R"([1E400, 1e-5, -0, -0.5, "a\u00e9\n", true, false, null, {}, []])"),
            R"([null,1e-05,0,-0.5,"aé\n",true,false,null,{},[]])");
}

TEST(JsonAsPython, RefusesWhatPythonRefuses) {
  for (const char* const text :
       {"", " ", "[NaN,]", "[NaN", "{\"a\":NaN,}", "{a:NaN}", "[01, NaN]", "[1., NaN]", "[.5, NaN]",
        "[+1, NaN]", "[- 1, NaN]", "nan", "[NaN] x", "[NaN, \"\\x\"]", "[NaN, \"\\u12g4\"]",
        "[NaN, \"\n\"]", "[NaN, \"a", "\xef\xbb\xbf{}"}) {
    EXPECT_EQ(Written(text), "not JSON") << text;
  }
}

TEST(JsonAsPython, SaysWhatItCannotHold) {
  EXPECT_EQ(Written(R"(["\ud800"])"), "not supported");
  EXPECT_EQ(Written(std::string(600, '[') + "NaN" + std::string(600, ']')), "not supported");
  EXPECT_NE(Written(std::string(500, '[') + "NaN" + std::string(500, ']')), "not supported");
}

}  // namespace
}  // namespace fathom
