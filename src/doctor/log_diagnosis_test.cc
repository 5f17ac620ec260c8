#include "doctor/log_diagnosis.h"

#include <gmock/gmock.h>

#include "logs/log_digest.h"

namespace fathom {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<Finding> FindingsIn(std::string_view text) {
  LogDigest digest;
  digest.Feed(text);
  digest.End();
  FindingBook book;
  DiagnoseLog({"x.log", digest.facts()}, book);
  return book.Take();
}

std::string Repeated(std::string_view line, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text.append(line).append("\n");
  return text;
}

constexpr std::string_view kEmptyTree =
    "2026-02-16T14:38:53.950961Z  INFO dynamo_llm::kv_router::scheduler: Selected worker: "
    "worker_id=11 dp_rank=0, logit: 138.656, cached blocks: 0, tree size: 0";
constexpr std::string_view kNoParent =
    "2026-02-16T14:38:53.9Z  WARN dynamo_llm::kv_router::indexer: Failed to find parent block; "
    "skipping store operation";
constexpr std::string_view kNoBlock =
    "2026-02-16T14:38:53.9Z  WARN dynamo_llm::kv_router::indexer: Failed to find block to remove; "
    "skipping remove operation";

TEST(LogDiagnosis, FindsAnIndexThatIsAlwaysEmpty) {
  const auto findings = FindingsIn(Repeated(kEmptyTree, 10));
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, FindingId::kIndexEmpty);
  EXPECT_THAT(findings[0].message, HasSubstr("All 10 scheduler lines have tree size 0"));
  EXPECT_EQ(ToText(findings[0].place), "x.log:1");
}

TEST(LogDiagnosis, GivesAYoungRouterItsFirstRequests) {
  EXPECT_THAT(FindingsIn(Repeated(kEmptyTree, 3)), IsEmpty());
}

TEST(LogDiagnosis, NeedsFewerLinesWhereEventsAreRefused) {
  const auto findings = FindingsIn(Repeated(kEmptyTree, 3) + Repeated(kNoParent, 4));
  EXPECT_EQ(findings[0].id, FindingId::kIndexEmpty);
  EXPECT_EQ(findings[1].id, FindingId::kEventsNotApplied);
}

TEST(LogDiagnosis, SeesACacheThatTurnsOverInTheRatioOfTheWarnings) {
  const auto findings = FindingsIn(Repeated(kNoParent, 10) + Repeated(kNoBlock, 200));
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_EQ(findings[1].id, FindingId::kChurn);
  EXPECT_THAT(findings[1].message, HasSubstr("20 to 1"));
}

TEST(LogDiagnosis, NamesBothSizesOfAPublisherThatDropsBlocks) {
  const auto findings = FindingsIn(
      "WARN Block not published. Block size must be 16 tokens to be published. Block size is: 32");
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, FindingId::kBlockSizeMismatch);
  EXPECT_THAT(findings[0].message, HasSubstr("16 tokens"));
  EXPECT_THAT(findings[0].message, HasSubstr("32 tokens"));
  EXPECT_EQ(findings[0].fixes[0].setting, "DYN_KV_CACHE_BLOCK_SIZE=32");
  EXPECT_THAT(findings[0].fixes, SizeIs(2));
}

TEST(LogDiagnosis, SaysNothingOfALogThatTellsOfHits) {
  EXPECT_THAT(
      FindingsIn(Repeated("INFO Selected worker: worker_id=1 dp_rank=0, logit: 3.5, cached blocks: "
                          "12, tree size: 140",
                          50)),
      IsEmpty());
  EXPECT_THAT(FindingsIn("\x01\x02 garbage \xff\n\n\n"), IsEmpty());
}

}  // namespace
}  // namespace fathom
