#include "diagnose/findings/report_markdown.h"

#include <gmock/gmock.h>

#include "base/text.h"
#include "testing/sample_report.h"

namespace fathom {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string MessageOf(const std::string& text) {
  Report report;
  report.findings = {MakeFinding(FindingId::kNoEvents, "", text)};
  const std::string markdown = ReportMarkdown(report);
  const size_t begin = markdown.find("not arrive\n\n") + 12;
  return markdown.substr(begin, markdown.find('\n', begin) - begin);
}

TEST(ReportMarkdown, HasHeadingsTablesAndFences) {
  const std::string text = ReportMarkdown(SampleReport());
  EXPECT_THAT(text, HasSubstr("### 1. ERROR: Router and engine use different KV block sizes"));
  EXPECT_THAT(text, HasSubstr("\n## 4. Fixes\n"));
  EXPECT_THAT(
      text, HasSubstr("\n| Side | Tokens | Where | How it is known |\n| --- | ---: | --- | --- |\n"
                      "| router | **16** | Frontend, agg_router.yaml:9 |"));
  EXPECT_THAT(text, HasSubstr("\n```diff\n--- a/agg_router.yaml\n"));
  EXPECT_THAT(text, HasSubstr("\n**Not seen**\n\n- lag and gaps"));
  EXPECT_THAT(text, HasSubstr("`fathom docs block-size-mismatch` (`block-size-mismatch`)"));
}

TEST(ReportMarkdown, LeavesNamesReadable) {
  EXPECT_EQ(MessageOf("set DYN_ROUTER_MODE=kv (1.5 of 2)"), "set DYN_ROUTER_MODE=kv (1.5 of 2)");
}

TEST(ReportMarkdown, EscapesWhatWouldFormat) {
  EXPECT_EQ(MessageOf("a|b `c` *d* _e_ [f](g) <b>&amp; $h$ \\"),
            "a\\|b \\`c\\` \\*d\\* \\_e\\_ \\[f\\](g) &lt;b&gt;&amp;amp; \\$h\\$ \\\\");
  EXPECT_EQ(MessageOf("# a"), "\\# a");
  EXPECT_EQ(MessageOf("- a"), "\\- a");
  EXPECT_EQ(MessageOf("1. a"), "1\\. a");
  EXPECT_EQ(MessageOf("1.5 a"), "1.5 a");
  EXPECT_EQ(MessageOf("a\n\n# b"), "a \\# b");
}

TEST(ReportMarkdown, KeepsEveryRowOfATableOnOneLineWithItsCells) {
  const std::string text = ReportMarkdown(ReportThatSays("a|b\n|c|"));
  EXPECT_THAT(text, HasSubstr("| **a\\|b \\|c\\|** | a\\|b \\|c\\| |\n"));
}

TEST(ReportMarkdown, FencesCodeThatHasFences) {
  Report report;
  Finding finding = MakeFinding(FindingId::kNoEvents, "", "");
  finding.fixes = {{"", "a\n````\nb <b>", "", "", ""}};
  report.findings = {finding};
  EXPECT_THAT(ReportMarkdown(report), HasSubstr("\n`````\na\n````\nb <b>\n`````\n"));
}

TEST(ReportMarkdown, HasNoTagsFromOutside) {
  Report report = ReportThatSays("<script>alert(1)</script>\x1b[2J");
  for (Fix& fix : report.findings[0].fixes) fix.setting = fix.diff = "";  // code shows them
  const std::string text = ReportMarkdown(report);
  EXPECT_THAT(text, Not(HasSubstr("<script")));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("&lt;script&gt;"));
}

}  // namespace
}  // namespace fathom
