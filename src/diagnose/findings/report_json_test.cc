#include "diagnose/findings/report_json.h"

#include <gmock/gmock.h>

#include <limits>

#include "codec/json.h"
#include "testing/sample_report.h"

namespace fathom {
namespace {

Json ParsedReport(const Report& report) {
  auto json = Json::Parse(ReportJson(report));
  EXPECT_TRUE(json) << ReportJson(report);
  return json ? *json : Json();
}

TEST(ReportJson, IsOneObjectOnOneLine) {
  const std::string text = ReportJson(SampleReport());
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  EXPECT_TRUE(Json::Parse(text));
}

TEST(ReportJson, HasFindingsByRank) {
  const Json json = ParsedReport(SampleReport());
  const Json::Array& findings = *json.Find("findings")->array();
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(*findings[0].Find("id")->string(), "block-size-mismatch");
  EXPECT_EQ(*findings[1].Find("id")->string(), "churn");
  EXPECT_EQ(*json.Find("status")->string(), "findings");
}

TEST(ReportJson, IsHealthyWithoutFindingsAndUnseenWithoutSight) {
  Report report;
  report.looked_at = {{"worker", true, ""}, {"logs", true, ""}};
  EXPECT_EQ(*ParsedReport(report).Find("status")->string(), "healthy");
  report.looked_at[1] = {"logs", false, "no such file"};
  EXPECT_EQ(*ParsedReport(report).Find("status")->string(), "unseen");
}

TEST(ReportJson, HasTablesAndPlotsOfEverySection) {
  const Json json = ParsedReport(SampleReport());
  const Json::Array& sections = *json.Find("sections")->array();
  ASSERT_EQ(sections.size(), 3u);
  EXPECT_EQ(*sections[2].Find("part")->string(), "memory");
  const Json& table = (*sections[0].Find("tables")->array())[0];
  EXPECT_EQ(*(*(*table.Find("rows")->array())[0].array())[1].string(), "16");
  const Json& plot = (*sections[1].Find("plots")->array())[1];
  EXPECT_EQ(*plot.Find("kind")->string(), "lines");
  EXPECT_EQ((*plot.Find("series")->array())[0].Find("y")->array()->size(), 37u);
  EXPECT_EQ(sections[1].Find("missing")->array()->size(), 1u);
}

TEST(ReportJson, HasWhatWasLookedAtAndSent) {
  const Json json = ParsedReport(SampleReport());
  const Json& refused = json.Find("looked_at")->array()->back();
  EXPECT_EQ(*refused.Find("seen")->boolean(), false);
  EXPECT_EQ(*refused.Find("outcome")->string(), "connection refused");
  const Json& sent = (*json.Find("sent")->array())[1];
  EXPECT_EQ(*sent.Find("target")->string(), "http://10.0.3.12:8000/health");
  EXPECT_EQ(sent.Find("times")->unsigned_integer(), 2u);
}

TEST(ReportJson, GivesHostileTextBackAsItWas) {
  const std::string hostile = "\"}],\x1b[2J\n<script>\\";
  const Json json = ParsedReport(ReportThatSays(hostile));
  EXPECT_EQ(*json.Find("verdict")->string(), hostile);
  EXPECT_EQ(*(*json.Find("findings")->array())[0].Find("message")->string(), hostile);
}

TEST(ReportJson, WritesNullForWhatIsNoNumber) {
  Report report = SampleReport();
  report.sections[1].plots[0].series[0].y[0] = std::numeric_limits<double>::infinity();
  const Json json = ParsedReport(report);
  const Json& plot = (*(*json.Find("sections")->array())[1].Find("plots")->array())[0];
  const Json& values = *(*plot.Find("series")->array())[0].Find("y");
  EXPECT_TRUE((*values.array())[0].is_null());
}

}  // namespace
}  // namespace fathom
