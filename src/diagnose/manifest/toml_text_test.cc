#include "diagnose/manifest/toml_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fathom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// "name=value at BYTES" of every entry.
std::vector<std::string> Entries(std::string text) {
  const SourceFile file{"x.toml", std::move(text)};
  const auto entries = ReadToml(Passage(file));
  EXPECT_TRUE(entries) << entries.error().what;
  std::vector<std::string> seen;
  for (const Written& entry : *entries) {
    seen.push_back(fmt::format("{}={} at {}", entry.name, entry.value,
                               file.text.substr(entry.span->offset, entry.span->length)));
  }
  return seen;
}

std::string Problem(std::string text) {
  const SourceFile file{"x.toml", std::move(text)};
  const auto entries = ReadToml(Passage(file));
  return entries ? "" : entries.error().what;
}

TEST(TomlText, ReadsTablesAndKeys) {
  EXPECT_THAT(Entries("a = 1 # c\r\n[ b . \"c d\" ]\ne.f = 'x'\n[[g]]\nh=true\n"),
              ElementsAre("a=1 at 1", "b.c d.e.f=x at 'x'", "g.h=true at true"));
}

TEST(TomlText, ReadsValuesOfEveryKind) {
  EXPECT_THAT(Entries("a = \"\xc3\xa9 \\\" #\"\nb = [1_000,\n  'x', # c\n]\nc = {d = 0.5, e = "
                      "{f = -1}}\ng = '''\nlong\n'''\nh = 1979-05-27T07:32:00Z\ni = []\n"),
              ElementsAre("a=\xc3\xa9 \" # at \"\xc3\xa9 \\\" #\"", "b=1000 at 1_000", "b=x at 'x'",
                          "c.d=0.5 at 0.5", "c.e.f=-1 at -1", "g=\nlong\n at '''\nlong\n'''",
                          "h=1979-05-27T07:32:00Z at 1979-05-27T07:32:00Z"));
}

TEST(TomlText, NamesWhereItIsWrong) {
  EXPECT_EQ(Problem("a = 1\nb = \n"), "x.toml:2:5: bad TOML: a value was expected");
  EXPECT_EQ(Problem("a = 'x\n"), "x.toml:1:5: bad TOML: a quote that is never closed");
  EXPECT_THAT(Problem("[a\n"), StartsWith("x.toml:1:3:"));
  EXPECT_THAT(Problem("a\n"), HasSubstr("a key without a value"));
  EXPECT_THAT(Problem("a = 1 2\n"), HasSubstr("after the value"));
  EXPECT_THAT(Problem("a = [1, 2"), HasSubstr("never closed"));
  EXPECT_THAT(Problem("a = {b = 1"), HasSubstr("never closed"));
  EXPECT_THAT(Problem("a = '''x"), HasSubstr("never closed"));
}

TEST(TomlText, HasBounds) {
  EXPECT_THAT(Problem("a = " + std::string(100'000, '[')), HasSubstr("nested too deep"));
  EXPECT_THAT(Problem(std::string(1000, 'a') + " = 1"), HasSubstr("too long"));
  std::string many = "a = [";
  for (size_t i = 0; i <= kMaxTomlEntries; ++i) many += "1,";
  EXPECT_THAT(Problem(many + "]"), HasSubstr("too many values"));
}

}  // namespace
}  // namespace fathom
