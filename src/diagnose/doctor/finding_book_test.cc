#include "diagnose/doctor/finding_book.h"

#include <gmock/gmock.h>

namespace fathom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

Finding Of(FindingId id, std::string subject, double gain, std::string evidence) {
  Finding finding = MakeFinding(id, std::move(subject), "It is so");
  finding.gain = gain;
  finding.evidence = {std::move(evidence)};
  return finding;
}

TEST(FindingBook, KeepsOneFindingOfAKindWithTheEvidenceOfAll) {
  FindingBook book;
  book.Add(Of(FindingId::kNoEvents, "http://a:1", 0.5, "a is silent"));
  book.Add(Of(FindingId::kNoEvents, "http://b:1", 0.7, "b is silent"));
  book.Add(Of(FindingId::kNoEvents, "http://a:1", 0.1, "a is silent"));
  const auto findings = book.Take();
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].subject, "http://a:1, http://b:1");
  EXPECT_THAT(findings[0].evidence, ElementsAre("a is silent", "b is silent"));
  EXPECT_EQ(findings[0].gain, 0.7);
}

TEST(FindingBook, KeepsWhatWasSaidInOtherWordsAsEvidenceWithItsPlace) {
  FindingBook book;
  book.Add(Of(FindingId::kReplayMissing, "a", 0.1, "first"));
  Finding other = Of(FindingId::kReplayMissing, "b", 0.1, "second");
  other.message = "There is no replay";
  other.place = {"b.yaml", 7};
  book.Add(other);
  const auto findings = book.Take();
  EXPECT_THAT(findings[0].evidence,
              ElementsAre("first", "There is no replay (b.yaml:7)", "second"));
}

TEST(FindingBook, PutsNoTwoDiffsOfOneFileTogether) {
  FindingBook book;
  for (const char* diff :
       {"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n", "--- a/y\n+++ b/y\n@@ -1 +1 @@\n-1\n+2\n",
        "--- a/x\n+++ b/x\n@@ -2 +2 @@\n-3\n+4\n"}) {
    Finding finding = Of(FindingId::kReplayMissing, "a", 0.1, "e");
    finding.fixes = {{.what = "Do it", .setting = "", .diff = diff, .cost = "", .verify = ""}};
    book.Add(std::move(finding));
  }
  const auto findings = book.Take();
  ASSERT_THAT(findings[0].fixes, SizeIs(1));
  EXPECT_EQ(findings[0].fixes[0].diff,
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-1\n+2\n");
}

TEST(FindingBook, TakesSymptomsAsEvidenceOfTheCauseThatExplainsThem) {
  FindingBook book;
  book.Add(Of(FindingId::kIndexEmpty, "", 1, "tree size 0 in all lines"));
  book.Add(Of(FindingId::kBlockSizeMismatch, "engine", 1, "16 against 32"));
  book.Add(Of(FindingId::kReplayMissing, "engine", 0.1, "no replay"));
  const auto findings = book.Take();
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_EQ(findings[0].id, FindingId::kBlockSizeMismatch);
  EXPECT_THAT(findings[0].evidence,
              ElementsAre("16 against 32", "It is so", "tree size 0 in all lines"));
  EXPECT_EQ(findings[1].id, FindingId::kReplayMissing);
}

TEST(FindingBook, LetsASymptomStandAloneWhereOnlyASmallPartOfTheFleetIsAtFault) {
  FindingBook book;
  book.Add(Of(FindingId::kIndexEmpty, "", 1, "tree size 0 in all lines"));
  book.Add(Of(FindingId::kUnhealthy, "http://a:1", 0.1, "one of ten"));
  const auto findings = book.Take();
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_EQ(findings[0].id, FindingId::kIndexEmpty);
}

TEST(FindingBook, CountsWhatIsTooMuchToShow) {
  FindingBook book;
  for (int i = 0; i < 100; ++i) {
    book.Add(Of(FindingId::kNoEvents, std::to_string(i), 0.5, "evidence " + std::to_string(i)));
  }
  const auto findings = book.Take();
  EXPECT_EQ(findings[0].subject, "0, 1, 2, 3 and 96 more");
  EXPECT_THAT(findings[0].evidence, SizeIs(FindingBook::kMaxEvidence + 1));
  EXPECT_EQ(findings[0].evidence.back(), "and 88 more like these");
}

TEST(FindingBook, JoinsTheDiffsOfOneFixInSeveralFiles) {
  FindingBook book;
  for (const char* diff : {"--- a/x\n", "--- a/y\n", "--- a/x\n"}) {
    Finding finding = Of(FindingId::kPublisherOff, "", 0.9, diff);
    finding.fixes = {{.what = "Turn it on", .setting = "on", .diff = diff}};
    book.Add(finding);
  }
  const auto findings = book.Take();
  ASSERT_THAT(findings[0].fixes, SizeIs(1));
  EXPECT_EQ(findings[0].fixes[0].diff, "--- a/x\n--- a/y\n");
}

TEST(FindingBook, PrefersAChangeToTheFileToWordsInGeneral) {
  FindingBook book;
  Finding linted = Of(FindingId::kPublisherOff, "a", 0.9, "the file");
  linted.fixes = {{.what = "Turn it on in this file", .diff = "--- a/x\n"}};
  Finding seen = Of(FindingId::kPublisherOff, "http://a:1", 0.9, "the engine");
  seen.fixes = {{.what = "Turn it on somehow"}};
  book.Add(linted);
  book.Add(seen);
  EXPECT_THAT(book.Take()[0].fixes, SizeIs(1));
}

}  // namespace
}  // namespace fathom
