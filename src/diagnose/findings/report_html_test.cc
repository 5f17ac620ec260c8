#include "diagnose/findings/report_html.h"

#include <gmock/gmock.h>

#include "testing/markup_problem.h"
#include "testing/sample_report.h"

namespace fathom {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ReportHtml, IsWellFormed) {
  EXPECT_EQ(MarkupProblem(ReportHtml(SampleReport())), "");
  EXPECT_EQ(MarkupProblem(ReportHtml(Report())), "");
}

TEST(ReportHtml, FetchesAndRunsNothing) {
  const std::string html = ReportHtml(SampleReport());
  EXPECT_THAT(html, HasSubstr("content=\"default-src 'none'; style-src 'unsafe-inline'\""));
  for (const char* what : {"<script", "<link", "<img", "<iframe", "src=", "url(", "@import",
                           "javascript:", "href=\"http", "style=\""}) {
    EXPECT_THAT(html, Not(HasSubstr(what)));
  }
}

TEST(ReportHtml, HasVerdictFindingsPartsFixesAndAppendix) {
  const std::string html = ReportHtml(SampleReport());
  size_t at = 0;
  for (const char* piece : {"<h1>Cache-aware routing does nothing",
                            "1 error, 2 warnings",
                            "id=\"finding-1\"",
                            "Router and engine use different",
                            "Frontend (agg_router.yaml:9)",
                            "DYN_ROUTER_MODE=kv",
                            "Set DYN_KV_CACHE_BLOCK_SIZE=32",
                            "<span class=\"add\">+          value: &quot;32&quot;",
                            "One restart of the frontend",
                            "up to 62 % of possible reuse",
                            "block-size-mismatch</code>",
                            "id=\"finding-2\"",
                            "<h2 id=\"configuration\">1. Configuration",
                            "<td class=\"num bad\">16<",
                            "<h2 id=\"sync\">2. Sync",
                            "<svg viewBox",
                            "Not seen",
                            "<h2 id=\"memory\">3. Memory pressure",
                            "<h2 id=\"fixes\">4. Fixes",
                            "connection refused",
                            "server_info"}) {
    const size_t found = html.find(piece, at);
    ASSERT_NE(found, std::string::npos) << "not behind the others: " << piece;
    at = found;
  }
}

TEST(ReportHtml, EscapesEveryText) {
  const std::string hostile =
      "</title></style></pre><script>alert('1')</script>\"'&\x1b[2J\u202e\n|";
  const std::string html = ReportHtml(ReportThatSays(hostile));
  EXPECT_EQ(MarkupProblem(html), "");
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("alert('1')")));
  EXPECT_THAT(html, Not(HasSubstr("\x1b")));
  EXPECT_THAT(html, Not(HasSubstr("\u202e")));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(&#39;1&#39;)"));
}

TEST(ReportHtml, ShowsEveryFindingOfTheCatalogue) {
  Report report;
  for (const FindingKind& kind : Catalogue()) {
    report.findings.push_back(MakeFinding(kind.id, "subject", "message"));
  }
  const std::string html = ReportHtml(report);
  EXPECT_EQ(MarkupProblem(html), "");
  for (const FindingKind& kind : Catalogue())
    EXPECT_THAT(html, HasSubstr(DocsLinks().To(PageOf(kind.id))));
}

TEST(ReportHtml, IsCalmAboutAHealthyFleet) {
  Report report;
  report.verdict = "Cache-aware routing works.";
  const std::string html = ReportHtml(report);
  EXPECT_THAT(html, HasSubstr("badge healthy\">no findings"));
  EXPECT_THAT(html, HasSubstr("Nothing to fix."));
  EXPECT_THAT(html, Not(HasSubstr("href=\"#findings\"")));
}

TEST(MarkupProblem, FindsProblems) {
  EXPECT_EQ(MarkupProblem("<p class=\"a\">b<br>&lt;</p>"), "");
  for (const char* wrong :
       {"<p>", "</p>", "<b><i></b></i>", "a & b", "a > b", "<p class=\"a>b</p>"}) {
    EXPECT_NE(MarkupProblem(wrong), "") << wrong;
  }
}

}  // namespace
}  // namespace fathom
