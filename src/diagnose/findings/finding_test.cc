#include "diagnose/findings/finding.h"

#include <gmock/gmock.h>

#include <limits>

namespace fathom {
namespace {

using ::testing::ElementsAre;

Finding Made(FindingId id, double gain, std::string subject) {
  Finding finding = MakeFinding(id, std::move(subject), "");
  finding.gain = gain;
  return finding;
}

std::vector<std::string> Ranked(std::vector<Finding> findings) {
  SortFindings(findings);
  std::vector<std::string> subjects;
  for (const Finding& finding : findings) subjects.push_back(finding.subject);
  return subjects;
}

TEST(Finding, HasTheSeverityOfTheCatalogue) {
  EXPECT_EQ(MakeFinding(FindingId::kBlockSizeMismatch, "", "").severity, Severity::kError);
  EXPECT_EQ(MakeFinding(FindingId::kChurn, "", "").severity, Severity::kWarning);
}

TEST(FilePlace, IsWrittenAsCompilersDo) {
  EXPECT_EQ(ToText(FilePlace{"a.yaml", 12}), "a.yaml:12");
  EXPECT_EQ(ToText(FilePlace{"a.yaml", 0}), "a.yaml");
  EXPECT_EQ(ToText(FilePlace{}), "");
}

TEST(Rank, GoesBySeverityThenGainThenCatalogue) {
  EXPECT_THAT(
      Ranked({Made(FindingId::kChurn, 0.9, "a great warning"),
              Made(FindingId::kNoEvents, 0.1, "a small error"),
              Made(FindingId::kPublisherOff, 0.1, "a deeper small error"),
              Made(FindingId::kNoEvents, 0.5, "a great error")}),
      ElementsAre("a great error", "a deeper small error", "a small error", "a great warning"));
}

TEST(Rank, GoesByPlaceAndSubjectWhereNothingElseDiffers) {
  Finding early = Made(FindingId::kNoEvents, 0, "z");
  early.place = {"a.yaml", 3};
  Finding late = Made(FindingId::kNoEvents, 0, "a");
  late.place = {"a.yaml", 20};
  EXPECT_THAT(Ranked({late, early}), ElementsAre("z", "a"));
  EXPECT_THAT(Ranked({Made(FindingId::kNoEvents, 0, "b"), Made(FindingId::kNoEvents, 0, "a")}),
              ElementsAre("a", "b"));
}

TEST(Rank, CountsAGainThatIsNoNumberAsNone) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(Ranked({Made(FindingId::kNoEvents, nan, "nan"), Made(FindingId::kNoEvents, 0.2, "b"),
                      Made(FindingId::kPublisherOff, nan, "deeper nan")}),
              ElementsAre("b", "deeper nan", "nan"));
}

}  // namespace
}  // namespace fathom
