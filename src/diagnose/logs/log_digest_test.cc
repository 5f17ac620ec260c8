#include "diagnose/logs/log_digest.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "diagnose/logs/log_phrases.h"

namespace fathom {
namespace {

std::string Fixture(std::string_view name) {
  std::ifstream in(fmt::format("tests/data/logs/{}", name));
  EXPECT_TRUE(in) << name;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

LogFacts Digest(std::string_view log) {
  LogDigest digest;
  digest.Feed(log);
  digest.End();
  return digest.facts();
}

uint64_t Clashes(const LogFacts& facts, LogKind kind, uint32_t router, uint32_t worker) {
  uint64_t times = 0;
  for (const auto& [clash, count] : facts.clashes) {
    if (clash.kind == kind && clash.router == router && clash.worker == worker) times += count;
  }
  return times;
}

void ExpectTheIncident(const LogFacts& facts) {
  EXPECT_EQ(facts.lines, 60U);
  EXPECT_EQ(facts.recognised, 60U);
  EXPECT_EQ(ToText(*facts.first), "2026-02-16T14:38:53.100Z");
  EXPECT_EQ(ToText(*facts.last), "2026-02-16T14:39:01.315Z");
  EXPECT_EQ(facts.selections.lines, 10U);
  EXPECT_EQ(facts.selections.none_cached, 10U);
  EXPECT_EQ(facts.selections.tree_empty, 10U);
  EXPECT_EQ(facts.selections.max_tree_size, 0U);
  EXPECT_EQ(facts.selections.by_cached[0], 10U);
  const Tally& parents = facts.Of(LogKind::kParentMissing);
  EXPECT_EQ(parents.lines, 20U);
  EXPECT_EQ(parents.first_line, 4U);
  EXPECT_EQ(parents.peak_per_minute, 16U);
  EXPECT_NEAR(parents.PerMinute().value(), 20 / ((8.007) / 60), 0.1);
  EXPECT_EQ(facts.Of(LogKind::kRemoveMissing).lines, 30U);
  ASSERT_EQ(facts.ranks.size(), 2U);
  EXPECT_EQ(facts.ranks.at({"5120084417763301", 0}),
            (LoggedWork{.selections = 5, .none_cached = 5, .events_refused = 25}));
  EXPECT_EQ(facts.ranks.at({"8841905520014472", 0}).selections, 5U);
}

TEST(LogDigest, KnowsTheIncident) { ExpectTheIncident(Digest(Fixture("dynamo_incident.log"))); }

TEST(LogDigest, KnowsTheIncidentBehindPrefixes) {
  ExpectTheIncident(Digest(Fixture("dynamo_incident_prefixed.log")));
}

TEST(LogDigest, KnowsStructuredLinesWithColours) {
  const LogFacts facts = Digest(Fixture("dynamo_structured.log"));
  EXPECT_EQ(facts.recognised, 11U);
  EXPECT_EQ(facts.selections.lines, 2U);
  EXPECT_EQ(facts.selections.none_cached, 1U);
  EXPECT_EQ(facts.selections.with_tree_size, 0U);
  EXPECT_EQ(facts.ranks.at({"5120084417763301", 1}).cached_blocks, 40.75);
  EXPECT_EQ(facts.completions.lines, 1U);
  EXPECT_EQ(facts.completions.cached_blocks, 87);
  EXPECT_EQ(facts.completions.by_cached[7], 1U);
  EXPECT_EQ(facts.Of(LogKind::kWorkersRejected).first_line, 4U);
  EXPECT_EQ(Clashes(facts, LogKind::kBlockNotPublished, 16, 32), 1U);
  EXPECT_EQ(Clashes(facts, LogKind::kBlockTooLong, 16, 32), 1U);
  EXPECT_EQ(Clashes(facts, LogKind::kServiceMismatch, 16, 64), 1U);
  for (const LogKind kind : {LogKind::kApplyFailed, LogKind::kStaleParent, LogKind::kNoReplay,
                             LogKind::kGroupsUnknown}) {
    EXPECT_EQ(facts.Of(kind).lines, 1U) << Name(kind);
  }
}

TEST(LogDigest, KnowsJsonLines) {
  const LogFacts facts = Digest(Fixture("dynamo.jsonl"));
  EXPECT_EQ(facts.recognised, 5U);
  EXPECT_EQ(facts.selections.lines, 2U);
  EXPECT_EQ(facts.selections.cached_blocks, 12);
  EXPECT_EQ(facts.selections.tree_empty, 1U);
  EXPECT_EQ(facts.ranks.at({"8841905520014472", 0}).events_refused, 1U);
  EXPECT_EQ(facts.Of(LogKind::kPublisherDisabled).lines, 1U);
  EXPECT_EQ(Clashes(facts, LogKind::kRouterMismatch, 16, 64), 1U);
  EXPECT_EQ(facts.clashes.begin()->first.subject, "example/model");
  EXPECT_EQ(ToText(*facts.last), "2026-08-30T09:13:07.118Z");
}

TEST(LogDigest, KnowsWhatDockerWraps) {
  const LogFacts facts = Digest(Fixture("docker.jsonl"));
  EXPECT_EQ(facts.recognised, 3U);
  EXPECT_EQ(ToText(*facts.Of(LogKind::kRemoveMissing).first), "2026-02-16T14:38:53.100Z");
  EXPECT_EQ(ToText(*facts.Of(LogKind::kParentMissing).first), "2026-08-30T09:12:09.000Z");
  EXPECT_EQ(facts.selections.cached_blocks, 12);
}

TEST(LogDigest, KnowsEnginesLines) {
  const EngineFacts engines = Digest(Fixture("engines.log")).engines;
  EXPECT_EQ(engines.kv_tokens, (EngineFacts::Range{171008, 116617 * 32}));
  EXPECT_EQ(engines.tokens_per_block, (EngineFacts::Range{32, 32}));
  EXPECT_EQ(engines.max_concurrency, 57.46);
  EXPECT_EQ(engines.max_model_len, 8192U);
  EXPECT_EQ(engines.status_lines, 4U);
  EXPECT_NEAR(engines.max_usage, 0.988, 1e-9);
  EXPECT_NEAR(engines.usage_sum, 0.912 + 0.988 + 0.5 + 0.62, 1e-9);
  EXPECT_EQ(engines.max_running, 31U);
  EXPECT_EQ(engines.max_waiting, 17U);
  EXPECT_NEAR(engines.hit_rate.value(), 0.029, 1e-9);
  EXPECT_EQ(engines.preemptions, 5U);
  EXPECT_EQ(engines.new_tokens, 8000U);
  EXPECT_EQ(engines.cached_tokens, 192U);
}

TEST(LogDigest, KnowsEveryWarningOfDynamo) {
  const std::pair<LogKind, std::string_view> lines[] = {
      {LogKind::kParentMissing, "Failed to find parent block; skipping store operation"},
      {LogKind::kRemoveMissing, "Failed to find block to remove; skipping remove operation"},
      {LogKind::kApplyFailed, "Failed to apply event: Some(ParentBlockNotFound)"},
      {LogKind::kStaleParent, "Stale parent: worker no longer covers parent_hash; rejecting store"},
      {LogKind::kServiceMismatch,
       "block_size mismatch for model=m routing_group=default: existing=16, requested=32"},
      {LogKind::kReplicaDropped,
       "Dropping selector replica event with mismatched block size key=m:default "
       "expected_block_size=16 received_block_size=32"},
      {LogKind::kSourceIgnored, "Ignoring incompatible V2 KV state source advertisement"},
      {LogKind::kWorkersRejected, "Rejected incompatible workers; the first accepted one stays"},
      {LogKind::kNoReplay, "No replay endpoint configured; batches lost"},
      {LogKind::kPublisherDisabled, "No events diagnostic_code=\"kv_event_publisher_disabled\""},
      {LogKind::kSourceNotObserved, "No events diagnostic_code=\"kv_event_source_not_observed\""},
      {LogKind::kSourceAmbiguous, "Two events diagnostic_code=\"kv_event_source_ambiguous\""},
      {LogKind::kSourceRecovered, "Events diagnostic_code=\"kv_event_source_recovered\""},
      {LogKind::kGroupsUnknown, "Failed to fetch KV cache group metadata; falling back to vLLM"},
      {LogKind::kPrefillRouter, "Activating prefill router router_mode=Kv"},
  };
  for (const auto& [kind, words] : lines) {
    const LogFacts facts = Digest(fmt::format("2026-08-30T09:12:07Z  WARN x::y: {}\n", words));
    EXPECT_EQ(facts.recognised, 1U) << words;
    EXPECT_EQ(facts.Of(kind).lines, 1U) << words;
    EXPECT_EQ(Clashes(facts, kind, 16, 32), facts.clashes.size()) << words;
  }
}

TEST(LogDigest, KnowsTheLineFromBeforeWorkersHadRanks) {
  const LogFacts facts = Digest(
      "Selected worker: 1718573674787700186, logit: 0.562, cached blocks: 3, total blocks: 1302\n"
      "Selected pinned worker: worker_type=decode, worker_id=5 dp_rank=1, logit: 2, effective "
      "cached blocks: 7\n");
  EXPECT_EQ(facts.ranks.at({"1718573674787700186", 0}).cached_blocks, 3);
  EXPECT_EQ(facts.ranks.at({"5", 1}).cached_blocks, 7);
  EXPECT_EQ(facts.selections.with_tree_size, 0U);
}

TEST(LogDigest, BelievesNoWordsThatStandInAnotherField) {
  const LogFacts facts = Digest(
      R"({"time":"2026-08-30T09:12:04Z","message":"Request","prompt":"Selected worker: worker_id=1"})"
      "\nBlock contains multitudes\nHe is preempted by his wife\nSelected worker of the month\n");
  EXPECT_EQ(facts.lines, 4U);
  EXPECT_EQ(facts.recognised, 0U);
  EXPECT_TRUE(facts.ranks.empty());
}

TEST(LogDigest, BelievesNoWordsOfAPrompt) {
  const LogFacts facts = Digest(Fixture("prompts.log"));
  EXPECT_EQ(facts.lines, 7U);
  EXPECT_EQ(facts.recognised, 0U);
  EXPECT_TRUE(facts.clashes.empty());
}

TEST(LogDigest, StrikesOutAComplaintOfDynamoThatIsOver) {
  constexpr std::string_view kMissing =
      "2026-08-30T09:12:00Z  WARN dynamo_llm::kv_router: no source "
      "diagnostic_code=kv_event_source_not_observed worker_id=88\n";
  constexpr std::string_view kOtherMissing =
      R"({"message":"no source","diagnostic_code":"kv_event_publisher_disabled","worker_id":89})"
      "\n";
  const std::string both = fmt::format("{}{}", kMissing, kOtherMissing);
  EXPECT_EQ(Digest(both).complaints.size(), 2U);
  for (const std::string_view over :
       {"2026-08-30T09:12:00Z  INFO dynamo_llm::kv_router: ok again "
        "diagnostic_code=kv_event_source_recovered worker_id=88\n",
        "INFO x::y: Selected worker: worker_id=88 dp_rank=1, logit: 3, cached blocks: 4, tree "
        "size: "
        "9\n",
        "INFO x::y: route request completed worker_id=88 dp_rank=0 overlap_blocks=3\n"}) {
    const auto left = Digest(fmt::format("{}{}", both, over)).complaints;
    ASSERT_EQ(left.size(), 1U) << over;
    EXPECT_EQ(left.begin()->first.worker, "89") << over;
  }
  const std::string_view cold =
      "INFO x::y: Selected worker: worker_id=88 dp_rank=1, logit: 3, cached blocks: 0, tree size: "
      "9\n";
  EXPECT_EQ(Digest(fmt::format("{}{}", both, cold)).complaints.size(), 2U);
}

TEST(LogDigest, KnowsWhichLineFirstTellsOfPreemptions) {
  EXPECT_EQ(Digest(Fixture("engines.log")).engines.preemption_line, 4U);
  const LogFacts facts = Digest(
      "\nWARNING 08-21 07:17:09 scheduler.py:1057] Sequence group cmpl-1 is preempted by "
      "PreemptionMode.RECOMPUTE mode because there is not enough KV cache space.\n"
      "Sequence group cmpl-1 is fine\n");
  EXPECT_EQ(facts.engines.preemptions, 1U);
  EXPECT_EQ(facts.engines.preemption_line, 2U);
  EXPECT_EQ(facts.Of(LogKind::kVllmPreemption).lines, 1U);
}

TEST(LogDigest, CountsWithoutTimesWhereThereAreNone) {
  const LogFacts facts = Digest("WARN: Failed to find parent block; skipping store operation\n");
  const Tally& tally = facts.Of(LogKind::kParentMissing);
  EXPECT_EQ(tally.lines, 1U);
  EXPECT_FALSE(tally.first);
  EXPECT_FALSE(tally.PerMinute());
  EXPECT_EQ(tally.peak_per_minute, 0U);
}

TEST(LogDigest, CountsThePeakOfAnyMinuteThoughLinesComeOutOfOrder) {
  std::string log;
  for (const int minute : {5, 5, 4, 5, 30, 5, 4}) {
    log += fmt::format("2026-02-16T14:{:02}:00Z Failed to apply event\n", minute);
  }
  const LogFacts facts = Digest(log);
  EXPECT_EQ(facts.Of(LogKind::kApplyFailed).lines, 7U);
  EXPECT_EQ(facts.Of(LogKind::kApplyFailed).peak_per_minute, 4U);
}

TEST(LogDigest, SaysTheSameHoweverTheLogIsCut) {
  std::string log;
  for (const char* name : {"dynamo_incident.log", "dynamo_structured.log", "dynamo.jsonl",
                           "docker.jsonl", "engines.log"}) {
    log += Fixture(name);
  }
  log += "Frontend KV block size (16) does not match worker block size (32).\n\n\r\n";
  log += std::string(40000, 'x') + "Failed to apply event\nFailed to apply event";
  const LogFacts whole = Digest(log);
  EXPECT_EQ(whole.cut, 1U);
  EXPECT_EQ(whole.Of(LogKind::kApplyFailed).lines, 2U);
  for (const size_t piece : {1, 2, 3, 17, 16384, 16385}) {
    LogDigest digest;
    for (size_t at = 0; at < log.size(); at += piece) {
      digest.Feed(std::string_view(log).substr(at, piece));
    }
    digest.End();
    EXPECT_TRUE(digest.facts() == whole) << piece;
  }
}

TEST(LogDigest, IsNotUpsetByGarbage) {
  std::string garbage;
  for (int i = 0; i < 1 << 16; ++i) garbage += static_cast<char>(i * 2654435761U >> 13);
  LogDigest digest;
  digest.Feed(garbage);
  digest.Feed(std::string("\n\0Failed to apply event \xff\xfe\0\n", 28));
  for (int i = 0; i < 1000; ++i) digest.Feed(std::string(1000, '{'));  // a line that never ends
  digest.End();
  EXPECT_EQ(digest.facts().Of(LogKind::kApplyFailed).lines, 1U);
  EXPECT_GE(digest.facts().binary, 1U);
  EXPECT_GE(digest.facts().cut, 1U);
  EXPECT_LT(digest.MemoryBytes(), LogDigest::kMostBytes);
}

TEST(LogDigest, CountsWorkersBeyondItsRoomAsOthers) {
  LogDigest digest;
  for (int i = 0; i < 1000; ++i) {
    digest.Feed(
        fmt::format("Selected worker: worker_id={} dp_rank=0, logit: 1, cached blocks: 2, "
                    "tree size: 9\n",
                    i));
  }
  EXPECT_EQ(digest.facts().ranks.size(), kMaxLogRanks + 1);
  EXPECT_EQ(digest.facts().ranks.at({"others", 0}).selections, 1000 - kMaxLogRanks);
}

TEST(LogDigest, KeepsLittleOfALogThatTriesToFillIt) {
  LogDigest digest;
  const std::string words(4000, 'w');
  for (int i = 0; i < 2000; ++i) {
    digest.Feed(
        fmt::format("A rank is doubted: {0} worker_id={1}{0} url=http://{1}{0} dp_rank={1} "
                    "evidence=\"{0}\" fix=\"{0}\"\n",
                    words, i));
    digest.Feed(
        fmt::format("block_size mismatch for model={}{}: existing={}, requested=9\n", words, i, i));
    digest.Feed(fmt::format("Worker is not healthy url=http://{}{}\n", i, words));
    digest.Feed(fmt::format("Auto-configured KV block size to 16 model={}{}\n", i, words));
    digest.Feed(fmt::format("{{\"msg\":\"Selected worker\",\"worker_id\":\"{}{}\"}}\n", i, words));
  }
  digest.End();
  EXPECT_EQ(digest.facts().recognised, 10000U);
  EXPECT_EQ(digest.facts().trust.size(), kMaxLogRanks);
  EXPECT_LE(digest.facts().clashes.size(), kMaxClashes);
  EXPECT_EQ(digest.facts().complaints.size(), kMaxComplaints);
  EXPECT_LT(digest.MemoryBytes(), LogDigest::kMostBytes);
}

// About 150 MB; the time it takes is seen in the test's own report.
TEST(LogDigest, ReadsAMillionLinesInTheMemoryOfAFew) {
  LogDigest digest;
  std::string chunk;
  for (int i = 0; i < 1'000'000; ++i) {
    const int second = i / 500;
    chunk += fmt::format("2026-02-16T{:02}:{:02}:{:02}.{:06}Z  ", 10 + second / 3600,
                         second / 60 % 60, second % 60, i % 500 * 2000);
    if (i % 10 == 0) {
      chunk += fmt::format(
          "INFO dynamo_llm::kv_router::scheduler: Selected worker: worker_id={} "
          "dp_rank=0, logit: 1.500, cached blocks: {}, tree size: {}\n",
          i / 10 % 4, i / 10 % 2, i / 100);
    } else if (i % 10 == 1) {
      chunk +=
          "WARN dynamo_llm::kv_router::indexer: Failed to find parent block; skipping store "
          "operation worker_id=\"1\" dp_rank=0\n";
    } else {
      chunk +=
          "INFO dynamo_llm::http::service::openai: request completed status=200 model=m "
          "input_tokens=4096 output_tokens=128 elapsed_ms=912.221\n";
    }
    if (chunk.size() < 1 << 20) continue;
    digest.Feed(chunk);
    chunk.clear();
    ASSERT_LT(digest.MemoryBytes(), LogDigest::kMostBytes);
  }
  digest.Feed(chunk);
  digest.End();
  const LogFacts& facts = digest.facts();
  EXPECT_EQ(facts.lines, 1'000'000U);
  EXPECT_EQ(facts.recognised, 200'000U);
  EXPECT_EQ(facts.selections.lines, 100'000U);
  EXPECT_EQ(facts.selections.none_cached, 50'000U);
  EXPECT_EQ(facts.selections.max_tree_size, 9999U);
  EXPECT_EQ(facts.ranks.size(), 4U);
  EXPECT_EQ(facts.Of(LogKind::kParentMissing).peak_per_minute, 3000U);
  EXPECT_NEAR(facts.Of(LogKind::kParentMissing).PerMinute().value(), 3000, 5);
  EXPECT_EQ(ToText(*facts.last), "2026-02-16T10:33:19.998Z");
  EXPECT_LT(digest.MemoryBytes(), size_t{128} << 10);
}

TEST(LogPhrases, EveryKindHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kLogKinds; ++i) names.insert(Name(static_cast<LogKind>(i)));
  EXPECT_EQ(names.size(), kLogKinds);
  EXPECT_FALSE(names.contains(""));
  EXPECT_EQ(Name(LogKind::kParentMissing), "Failed to find parent block");
  EXPECT_EQ(Name(LogKind::kSglangCapacity), "max_total_num_tokens");
}

TEST(LogPhrases, TheFirstOfTheTextIsTaken) {
  const auto found = FindPhrase("Failed to apply event: Failed to find parent block");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->kind, LogKind::kApplyFailed);
  EXPECT_EQ(FindPhrase("abc Decode batch")->at, 4U);
  EXPECT_FALSE(FindPhrase("Dec"));
  EXPECT_FALSE(FindPhrase("Selected worke"));
}

}  // namespace
}  // namespace fathom
