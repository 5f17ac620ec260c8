#include "diagnose/doctor/log_diagnosis.h"

#include <gmock/gmock.h>

#include "diagnose/logs/log_digest.h"

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

constexpr std::string_view kUnread =
    "2026-03-01T12:00:00.000Z WARN  Prompts are routed without their prefix, by load alone: caches "
    "are not used model=m cause=prompts_unread reason=template route=messages engine=sglang "
    "unread=\"6 of the last 6\" cost_tokens=600 fix=\"update the engines\"";
constexpr std::string_view kReadAgain =
    "2026-03-01T12:20:00.000Z INFO  Prompts are read again model=m";

TEST(LogDiagnosis, FindsPromptsThatAreNotRead) {
  const auto findings = FindingsIn(Repeated(kUnread, 3));
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, FindingId::kPromptsUnread);
  EXPECT_EQ(findings[0].subject, "model m");
  EXPECT_EQ(ToText(findings[0].place), "x.log:3");
  EXPECT_THAT(findings[0].evidence,
              Contains(HasSubstr("6 of the last 6 unread; the latest: route messages, engine "
                                 "sglang, reason template (")));
  EXPECT_THAT(findings[0].evidence, Contains(HasSubstr("logged 3 times from 2026-03-01")));
  EXPECT_EQ(findings[0].fixes.at(0).what, "Update the engines");
}

TEST(LogDiagnosis, PromptsThatAreReadAgainAreNoFinding) {
  EXPECT_THAT(FindingsIn(Repeated(kUnread, 3) + Repeated(kReadAgain, 1)), IsEmpty());
  EXPECT_THAT(FindingsIn(Repeated(kReadAgain, 1) + Repeated(kUnread, 1)), SizeIs(1));
}

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

TEST(LogDiagnosis, TakesTheWarningsAloneForTheIncidentThatTheyAre) {
  const auto findings = FindingsIn(Repeated(kNoParent, 3000));
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, FindingId::kEventsNotApplied);
  EXPECT_EQ(findings[0].severity, Severity::kError);
  EXPECT_EQ(findings[0].gain, 1);
  EXPECT_THAT(findings[0].why, HasSubstr("block size"));
  EXPECT_THAT(findings[0].fixes[0].setting, HasSubstr("DYN_KV_CACHE_BLOCK_SIZE="));
}

TEST(LogDiagnosis, TakesThemForLessWhereRequestsFindBlocks) {
  const auto findings = FindingsIn(
      Repeated(kNoParent, 3000) +
      Repeated("INFO Selected worker: worker_id=1 dp_rank=0, logit: 3.5, cached blocks: 12, tree "
               "size: 140",
               50));
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
}

TEST(LogDiagnosis, SeesACacheThatTurnsOverInTheRatioOfTheWarnings) {
  const auto findings = FindingsIn(Repeated(kNoParent, 10) + Repeated(kNoBlock, 200));
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_EQ(findings[1].id, FindingId::kChurn);
  EXPECT_THAT(findings[1].message, HasSubstr("20 to 1"));
}

TEST(LogDiagnosis, AdvisesNoSizeThatAnotherWorkerDoesNotHave) {
  const auto findings = FindingsIn(
      "2026-03-01T12:00:00.000Z INFO KV events of a rank are trusted worker_id=1 url=http://a:1 "
      "dp_rank=0 block_size=16\n"
      "2026-03-01T12:00:01.000Z ERROR Frontend KV block size (16) does not match worker block size "
      "(32).\nConfigure --block-size 16 on workers, or unset --kv-cache-block-size on the frontend "
      "and start it with --block-size-conflict=mixed: other workers have another block size.\n"
      "KV-aware routing will not function until block sizes match. worker_id=2 url=http://b:1 "
      "dp_rank=0\n");
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].id, FindingId::kBlockSizeMismatch);
  for (const Fix& fix : findings[0].fixes) {
    EXPECT_FALSE(fix.what.contains("Remove the block size")) << fix.what;
  }
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

constexpr std::string_view kHit =
    "2026-02-16T14:38:53.9Z  INFO dynamo_llm::kv_router::scheduler: Selected worker: worker_id=11 "
    "dp_rank=0, logit: 3.5, cached blocks: 12, tree size: 140";
constexpr std::string_view kNoHit =
    "2026-08-30T09:12:00Z  INFO dynamo_llm::kv_router: route request completed request_id=\"r-0\" "
    "worker_id=11 dp_rank=1 overlap_blocks=0";

TEST(LogDiagnosis, MakesNothingOfAFewRefusedEventsAmongManyHits) {
  EXPECT_THAT(FindingsIn(Repeated(kHit, 1000) + Repeated(kNoBlock, 3)), IsEmpty());
  EXPECT_THAT(FindingsIn(Repeated(kHit, 100) + Repeated(kNoParent, 3)), SizeIs(1));
  EXPECT_THAT(FindingsIn(Repeated(kHit, 5000) + Repeated(kNoParent, 12)), SizeIs(1));
  EXPECT_THAT(FindingsIn(Repeated(kNoBlock, 1)), SizeIs(1));
}

TEST(LogDiagnosis, BlamesRemovalsAloneForNothingThatStoresDo) {
  EXPECT_THAT(FindingsIn(Repeated(kNoBlock, 12))[0].why, HasSubstr("do no harm"));
  EXPECT_THAT(FindingsIn(Repeated(kNoBlock, 12) + Repeated(kNoParent, 1))[0].why,
              HasSubstr("descendants"));
}

TEST(LogDiagnosis, CallsNoIndexEmptyOfWhichItOnlyKnowsThatNothingWasFound) {
  EXPECT_THAT(FindingsIn(Repeated(kNoHit, 49)), IsEmpty());
  const auto findings = FindingsIn(Repeated(kNoHit, 60));
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].severity, Severity::kWarning);
  EXPECT_THAT(findings[0].message, HasSubstr("None of 60 requests"));
  EXPECT_THAT(findings[0].message, HasSubstr("without follow-up turns"));
  const auto refused = FindingsIn(Repeated(kNoHit, 10) + Repeated(kNoParent, 10));
  EXPECT_EQ(refused[0].id, FindingId::kIndexEmpty);
  EXPECT_EQ(refused[0].severity, Severity::kError);
}

TEST(LogDiagnosis, ForgivesARouterThatStartedBeforeItsEngines) {
  const std::string ill =
      "2026-03-01T12:00:00Z WARN  Worker is not healthy; no requests are sent to it worker_id=1 "
      "url=http://a:8000 cause=\"connection refused\"\n"
      "2026-03-01T12:00:00Z WARN  No KV events from a worker; its cache is not known worker_id=1 "
      "url=http://a:8000 cause=\"it does not answer\"\n";
  const auto findings = FindingsIn(ill);
  ASSERT_THAT(findings, SizeIs(2));
  for (const Finding& finding : findings) {
    EXPECT_THAT(finding.evidence, Contains(HasSubstr("not resolved at the end of the log: "
                                                     "http://a:8000")));
  }
  EXPECT_THAT(FindingsIn(ill + "2026-03-01T12:01:00Z INFO  Worker is healthy worker_id=1 "
                               "url=http://a:8000\n"
                               "2026-03-01T12:01:00Z INFO  Following KV events worker_id=1 "
                               "url=http://a:8000 dp_rank=0\n"),
              IsEmpty());
}

TEST(LogDiagnosis, CitesTheStatusLineThatTellsOfPreemptions) {
  const auto findings = FindingsIn(
      "INFO 11-16 05:01:00 [loggers.py:123] Engine 000: Avg prompt throughput: 4200.1 tokens/s, "
      "Running: 32 reqs, Waiting: 0 reqs, GPU KV cache usage: 41.2%\n"
      "INFO 11-16 05:01:10 [loggers.py:123] Engine 000: Avg prompt throughput: 4200.1 tokens/s, "
      "Running: 32 reqs, Waiting: 0 reqs, Preemptions: 3, GPU KV cache usage: 99.2%\n");
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].id, FindingId::kPreemptions);
  EXPECT_EQ(ToText(findings[0].place), "x.log:2");
  EXPECT_THAT(findings[0].evidence, Contains(HasSubstr("x.log:2: \"Preemptions\"")));
}

}  // namespace
}  // namespace fathom
