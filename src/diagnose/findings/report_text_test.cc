#include "diagnose/findings/report_text.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/text.h"
#include "diagnose/findings/shown_text.h"
#include "testing/sample_report.h"

namespace fathom {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Text(const Report& report) {
  return ReportText(report, {.color = false, .width = 100});
}

// Expects the pieces, one behind the other.
void ExpectInOrder(std::string_view text, std::initializer_list<std::string_view> pieces) {
  size_t at = 0;
  for (const std::string_view piece : pieces) {
    const size_t found = text.find(piece, at);
    ASSERT_NE(found, std::string_view::npos) << "not behind the others: " << piece << "\n" << text;
    at = found + piece.size();
  }
}

TEST(ReportText, SaysTheVerdictThenFindingsThenPartsThenFixes) {
  ExpectInOrder(
      Text(SampleReport()),
      {"Fathom doctor 0.9.0 · 2026-02-16T14:39:02Z", "Cache-aware routing does nothing",
       "1 error, 2 warnings", "Findings", " 1  ERROR     Router and engine use",
       " 2  WARNING   Cached prefixes", " 3  WARNING   Lost KV events", "1. Configuration",
       "2. Sync", "3. Memory pressure", "4. Fixes", "Looked at", "Sent, all of it"});
}

TEST(ReportText, SaysEverythingAboutAFinding) {
  ExpectInOrder(
      Text(SampleReport()),
      {"Frontend (agg_router.yaml:9)", "The frontend cuts prompts into blocks of 16",
       "Why       Hashes", "Evidence  • agg_router.yaml:9", "• frontend.log: 10 of 10",
       "Fix       Set DYN_KV_CACHE_BLOCK_SIZE=32 on the frontend.",
       "                - name: DYN_KV_CACHE_BLOCK_SIZE\n                  value: \"32\"\n",
       "                +          value: \"32\"\n", "Cost      One restart",
       "Verify    \"tree size\"", "Or        Give the engines",
       "Gain      up to 62 % of possible reuse (62 % of",
       "More      fathom docs block-size-mismatch (block-size-mismatch)"});
}

TEST(ReportText, SaysWhatWasNotSeenAndCaptionsOfPlots) {
  const std::string text = Text(SampleReport());
  EXPECT_THAT(text, HasSubstr("  not seen: lag and gaps of the event streams (--listen 30s"));
  EXPECT_THAT(text, HasSubstr("• Cached blocks: The engines hold 5,504 blocks"));
}

TEST(ReportText, KeepsToTheWidth) {
  Report report = SampleReport();
  for (Finding& finding : report.findings) {
    for (Fix& fix : finding.fixes) fix.diff.clear();  // code may be wider
  }
  for (size_t width = 60; width <= 140; ++width) {
    for (const std::string_view line :
         SplitAny(ReportText(report, {.color = false, .width = width}), "\n")) {
      EXPECT_LE(ColumnsOf(line), width) << line;
    }
  }
}

TEST(ReportText, IsTheSameWithColourButForTheColours) {
  const std::string painted = ReportText(SampleReport(), {.color = true, .width = 100});
  std::string plain;
  for (size_t at = 0; at < painted.size(); ++at) {
    if (painted[at] == '\x1b')
      at = painted.find('m', at);
    else
      plain += painted[at];
  }
  EXPECT_NE(painted, plain);
  EXPECT_EQ(plain, Text(SampleReport()));
}

TEST(ReportText, SendsNothingFromOutsideToTheTerminal) {
  const std::string hostile = "a\x1b[2J\x1b]0;title\x07\u009b31m\u202eb\r\nc\xff";
  const std::string text = Text(ReportThatSays(hostile));
  EXPECT_THAT(text, HasSubstr("a\\x1b[2J\\x1b]0;title\\x07\\x9b31m\\u202eb c"));
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool end_of_line = c == '\n' || (c == '\r' && text[i + 1] == '\n');  // of a diff
    EXPECT_TRUE(end_of_line || (c >= 0x20 && c != 0x7f)) << i;
  }
  EXPECT_THAT(text, Not(HasSubstr("\u202e")));
  EXPECT_THAT(text, Not(HasSubstr("\u009b")));
}

TEST(ReportText, ShowsEveryFindingOfTheCatalogue) {
  Report report;
  for (const FindingKind& kind : Catalogue()) {
    report.findings.push_back(MakeFinding(kind.id, "subject", "message"));
  }
  const std::string text = Text(report);
  for (const FindingKind& kind : Catalogue()) {
    EXPECT_THAT(text, HasSubstr(std::string(kind.title)));
    EXPECT_THAT(text, HasSubstr(DocsLinks().To(PageOf(kind.id))));
  }
}

TEST(ReportText, IsShortForAHealthyFleet) {
  Report report;
  report.verdict = "Healthy.";
  report.sections = {{.part = Part::kSync, .lines = {}, .tables = {}, .plots = {}, .missing = {}}};
  const std::string text = Text(report);
  EXPECT_THAT(text, HasSubstr("no findings"));
  EXPECT_THAT(text, Not(HasSubstr("Findings")));
  EXPECT_THAT(text, HasSubstr("No data."));
  EXPECT_THAT(text, HasSubstr("Nothing to fix."));
}

}  // namespace
}  // namespace fathom
