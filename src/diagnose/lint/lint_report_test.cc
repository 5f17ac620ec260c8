#include "diagnose/lint/lint_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codec/json.h"

namespace fathom {
namespace {

using testing::HasSubstr;
using testing::Not;

LintResult OneFinding(std::string message) {
  LintFinding found;
  found.finding = MakeFinding(FindingId::kPublisherOff, "vllm", std::move(message));
  found.finding.place = {"x.yaml", 7};
  found.finding.why = "Because.";
  found.finding.fixes.resize(2);
  found.finding.fixes[0].what = "Do this.";
  found.finding.fixes[1].what = "Or that.";
  LintResult result;
  result.findings.push_back(found);
  return result;
}

TEST(LintReport, HasTheFormThatEditorsKnow) {
  EXPECT_THAT(LintText(OneFinding("it is off"), false),
              testing::StartsWith("x.yaml:7: error: it is off [publisher-off]\n"
                                  "    why:  Because.\n"
                                  "    fix:  Do this.\n"
                                  "    or:   Or that.\n"
                                  "    docs: fathom docs publisher-off\n"));
}

TEST(LintReport, IsPaintedOnlyIfAskedFor) {
  EXPECT_THAT(LintText(OneFinding("off"), true), HasSubstr("\x1b["));
  EXPECT_THAT(LintText(OneFinding("off"), false), Not(HasSubstr("\x1b")));
}

TEST(LintReport, LetsNoFileMoveTheCursor) {
  const std::string text = LintText(OneFinding("a\x1b[2Jb\rc\xc2\x9b\x64"), false);
  EXPECT_THAT(text, HasSubstr("a?[2Jb?c??d"));
}

TEST(LintReport, SaysWhatIsWrongOnPurpose) {
  LintResult result;
  result.on_purpose = 1;
  EXPECT_EQ(LintText(result, false), "no findings; 1 finding is wrong on purpose\n");
}

TEST(LintReport, HasTheShapeOfTheDoctorInJson) {
  LintResult result = OneFinding("off");
  result.unread.push_back({"y.yaml", "bad YAML"});
  const std::vector<std::string> fixed = {"z.yaml"};
  const auto json = Json::Parse(LintJson(result, fixed));
  ASSERT_TRUE(json);
  const Json& finding = json->Find("findings")->array()->at(0);
  EXPECT_EQ(*finding.Find("id")->string(), "publisher-off");
  EXPECT_EQ(*finding.Find("file")->string(), "x.yaml");
  EXPECT_EQ(finding.Find("line")->unsigned_integer(), 7);
  EXPECT_EQ(*finding.Find("fix")->string(), "Do this.");
  EXPECT_EQ(*json->Find("unread")->array()->at(0).Find("file")->string(), "y.yaml");
  EXPECT_EQ(*json->Find("fixed")->array()->at(0).string(), "z.yaml");
}

TEST(LintReport, NamesAFileThatWasNotReadOnce) {
  EXPECT_EQ(ToText(UnreadFile{"x.yaml", "x.yaml:1:2: bad"}), "x.yaml:1:2: bad");
  EXPECT_EQ(ToText(UnreadFile{"x.yaml", "No such file"}), "x.yaml: No such file");
}

}  // namespace
}  // namespace fathom
