#include "diagnose/findings/report_words.h"

#include <gmock/gmock.h>

#include <limits>

#include "testing/sample_report.h"

namespace fathom {
namespace {

using ::testing::ElementsAre;

Finding WithGain(double gain) {
  Finding finding;
  finding.gain = gain;
  return finding;
}

Table OneColumn(const std::vector<std::string>& texts) {
  Table table{.title = "", .columns = {"column"}, .rows = {}};
  for (const std::string& text : texts) table.rows.push_back({{text, Tone::kPlain}});
  return table;
}

TEST(CountOf, CountsBySeverity) {
  EXPECT_EQ(CountOf({}), "no findings");
  EXPECT_EQ(CountOf(SampleReport().findings), "1 error, 2 warnings");
  Finding note;
  note.severity = Severity::kInfo;
  EXPECT_EQ(CountOf({note}), "1 note");
}

TEST(GainOf, IsAShareOfPrefill) {
  EXPECT_EQ(GainOf(WithGain(0.62)), "up to 62 % of possible reuse");
  EXPECT_EQ(GainOf(WithGain(0.002)), "under 1 % of possible reuse");
  EXPECT_EQ(GainOf(WithGain(7)), "up to 100 % of possible reuse");
  EXPECT_EQ(GainOf(WithGain(0)), "");
  EXPECT_EQ(GainOf(WithGain(std::numeric_limits<double>::quiet_NaN())), "");
}

TEST(SubjectOf, NamesThePlaceToo) {
  Finding finding = MakeFinding(FindingId::kNoEvents, "frontend", "");
  EXPECT_EQ(SubjectOf(finding), "frontend");
  finding.place = {"a.yaml", 3};
  EXPECT_EQ(SubjectOf(finding), "frontend (a.yaml:3)");
  finding.subject = "";
  EXPECT_EQ(SubjectOf(finding), "a.yaml:3");
}

TEST(FixTable, HasEveryFixByRank) {
  const Table table = FixTable(SampleReport());
  std::vector<std::string> numbers;
  for (const auto& row : table.rows) numbers.push_back(row[0].text);
  EXPECT_THAT(numbers, ElementsAre("1", "1b", "2", "2b", "3"));
  EXPECT_EQ(table.rows[0][2].text, "up to 62 % of possible reuse");
  EXPECT_EQ(table.rows[1][2].text, "") << "the gain is that of the first fix";
}

TEST(SentTable, SaysReadOnlyOnlyOfWhatIs) {
  Report report = SampleReport();
  EXPECT_EQ(SentTable(report).title, "Sent, all of it read-only");
  report.sent.push_back({"POST", "http://host/v1/chat/completions", 8});
  EXPECT_EQ(SentTable(report).title, "Sent");
}

TEST(IsNumeric, KnowsNumbersWithUnits) {
  EXPECT_TRUE(IsNumeric(OneColumn({"16", "1,204", "-3.5", "–", ""}), 0));
  EXPECT_TRUE(IsNumeric(OneColumn({"62 %", "80.0 GiB", "3,120/min"}), 0));
  EXPECT_FALSE(IsNumeric(OneColumn({"16", "unknown"}), 0));
  EXPECT_FALSE(IsNumeric(OneColumn({"16 (default)"}), 0));
  EXPECT_FALSE(IsNumeric(OneColumn({"10.0.0.1:8000"}), 0));
  EXPECT_FALSE(IsNumeric(OneColumn({"", "-"}), 0));
  EXPECT_FALSE(IsNumeric(OneColumn({}), 0));
}

}  // namespace
}  // namespace fathom
