#include <gmock/gmock.h>

#include "diagnose/doctor/live_diagnosis.h"

namespace fathom {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

std::vector<Finding> DynamoFindings(const DynamoLook& look) {
  FindingBook book;
  DiagnoseDynamo(look, book);
  return book.Take();
}

DynamoLook WithoutHits() {
  DynamoLook look;
  look.url = "http://frontend:8000";
  look.reached = true;
  look.hit_rate.count = 100;
  return look;
}

TEST(DynamoDiagnosis, BlamesTheTrafficAsWellWhereEventsAreApplied) {
  DynamoLook look = WithoutHits();
  look.events_by_status["ok"] = 1000;
  const auto findings = DynamoFindings(look);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, FindingId::kIndexEmpty);
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
  EXPECT_THAT(findings[0].message, HasSubstr("without follow-up turns"));
}

TEST(DynamoDiagnosis, CallsAnIndexEmptyWhoseEventsAreNotApplied) {
  DynamoLook look = WithoutHits();
  look.events_by_status["parent_block_not_found"] = 1000;
  const auto findings = DynamoFindings(look);
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_EQ(findings[0].id, FindingId::kIndexEmpty);
  EXPECT_EQ(findings[0].severity, Severity::kError);
}

}  // namespace
}  // namespace fathom
