// The lines that Fathom writes, in text and in JSON, as its own log formats them.
#include "diagnose/logs/fathom_lines.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/log.h"
#include "diagnose/logs/log_digest.h"

namespace fathom {
namespace {

constexpr std::string_view kUrl = "http://10.0.0.7:8000";
constexpr std::string_view kAt = "2026-03-01T12:00:00.000Z";

class FathomLog : public testing::TestWithParam<LogFormat> {
 protected:
  void Say(LogLevel level, std::string_view message, Log::Fields fields) {
    digest_.Feed(FormatRecord(GetParam(), kAt, level, message, fields));
    digest_.Feed("\n");
  }
  void SayDoubted(std::string_view cause, std::string_view evidence, std::string_view fix) {
    Say(LogLevel::kWarn, "A rank is doubted: " + std::string(cause),
        {{"worker_id", 4711},
         {"url", kUrl},
         {"dp_rank", 1},
         {"cause", cause},
         {"evidence", evidence},
         {"cost_tokens", 1200},
         {"fix", fix}});
  }
  void SayUnread(std::string_view model, uint64_t cost) {
    Say(LogLevel::kWarn,
        "Prompts are routed without their prefix, by load alone: caches are not used",
        {{"model", model},
         {"cause", "prompts_unread"},
         {"reason", "no_tokenizer"},
         {"route", "chat"},
         {"engine", "trtllm"},
         {"unread", "6 of the last 50"},
         {"cost_tokens", cost},
         {"fix", "give the router the model's files, --model-path DIR"},
         {"docs", "fathom docs prompts-unread"}});
  }
  const LogFacts& facts() {
    digest_.End();
    return digest_.facts();
  }
  const TrustRecord& record() { return facts().trust.at({std::string(kUrl), 1}); }

  LogDigest digest_;
};

INSTANTIATE_TEST_SUITE_P(Formats, FathomLog, testing::Values(LogFormat::kText, LogFormat::kJson),
                         [](const auto& format) {
                           return format.param == LogFormat::kText ? "Text" : "Json";
                         });

TEST_P(FathomLog, TellsOfPromptsThatAreNotRead) {
  SayUnread("org/a model", 600);
  SayUnread("org/a model", 9000);
  SayUnread("well again", 600);
  Say(LogLevel::kInfo, "Prompts are read again", {{"model", "well again"}});
  Say(LogLevel::kInfo, "Prompts are read again", {{"model", "never complained of"}});
  ASSERT_EQ(facts().unread.size(), 2u);
  EXPECT_FALSE(facts().unread.at("well again").standing);
  const UnreadRecord& record = facts().unread.at("org/a model");
  EXPECT_TRUE(record.standing);
  EXPECT_EQ(record.reason, "no_tokenizer");
  EXPECT_EQ(record.route, "chat");
  EXPECT_EQ(record.engine, "trtllm");
  EXPECT_EQ(record.unread, "6 of the last 50");
  EXPECT_EQ(record.fix, "give the router the model's files, --model-path DIR");
  EXPECT_EQ(record.first_cost, 600u);
  EXPECT_EQ(record.cost, 9000u);
  EXPECT_EQ(record.times, 2u);
  EXPECT_EQ(record.line, 2u);
  EXPECT_TRUE(record.first && record.last);
}

TEST_P(FathomLog, OfTooManyUnreadModelsTheFirstAreKept) {
  for (size_t i = 0; i < 2 * kMaxUnreadModels; ++i) SayUnread("m" + std::to_string(i), 1);
  EXPECT_EQ(facts().unread.size(), kMaxUnreadModels);
  EXPECT_EQ(facts().Of(LogKind::kPromptsUnread).lines, 2 * kMaxUnreadModels);
}

TEST_P(FathomLog, TellsOfEveryCauseOfDoubt) {
  const std::pair<std::string_view, std::string_view> doubts[] = {
      {"no_events",
       "12 requests that must leave blocks in its cache over 30 s, and no KV event; "
       "nothing listens at tcp://10.0.0.7:5557"},
      {"prefix_caching_off", "the engine says that its prefix caching is off"},
      {"tokens_differ",
       "at position 3 of a prompt it computed token 9 'a \"b\"', the router "
       "expected 8; 5 requests in a row differ"},
      {"unsupported_groups", "2 cache groups follow rules that are not known here"},
      {"event_gap", "40 event batches were lost in 2 gaps, 0 were brought back by replay"},
      {"event_lag", "its events come 3.1 s late (by the engine's clock)"},
      {"prediction_drift", "it finds less in its cache than its events say"},
      {"churn", "what it keeps is evicted before it is wanted again"},
  };
  for (const auto& [cause, evidence] : doubts) {
    digest_ = LogDigest();
    SayDoubted(cause, evidence, R"(start vLLM with --kv-events-config '{"publisher": "zmq"}')");
    EXPECT_EQ(record().state, "doubted");
    EXPECT_EQ(record().cause, cause);
    EXPECT_EQ(record().evidence, evidence);
    EXPECT_EQ(record().fix, R"(start vLLM with --kv-events-config '{"publisher": "zmq"}')");
    EXPECT_EQ(record().worker_id, "4711");
    EXPECT_EQ(record().cost, 1200U);
    EXPECT_EQ(record().doubts, 1U);
    EXPECT_EQ(record().line, 1U);
    EXPECT_EQ(ToText(*record().time), kAt);
    EXPECT_EQ(facts().Of(LogKind::kRankDoubted).lines, 1U);
  }
}

TEST_P(FathomLog, KeepsTheCauseOfADoubtThatIsOver) {
  SayDoubted("event_gap", "40 event batches were lost", "give vLLM a replay_endpoint");
  Say(LogLevel::kInfo, "A rank is trusted again",
      {{"worker_id", 4711},
       {"url", kUrl},
       {"dp_rank", 1},
       {"was", "event_gap"},
       {"for_seconds", 12.5},
       {"cost_tokens", 9000}});
  EXPECT_EQ(record().state, "trusted");
  EXPECT_EQ(record().cause, "event_gap");
  EXPECT_EQ(record().evidence, "40 event batches were lost");
  EXPECT_EQ(record().cost, 9000U);
  EXPECT_EQ(record().line, 2U);
}

TEST_P(FathomLog, CountsDoubtsThatWereNotSaid) {
  SayDoubted("churn", "evicted", "more memory");
  // As it is written now, and as older releases wrote it.
  for (const char* const words :
       {"A rank was doubted repeatedly", "A rank was doubted again and again"}) {
    Say(LogLevel::kWarn, words,
        {{"worker_id", 4711},
         {"url", kUrl},
         {"dp_rank", 1},
         {"cause", "churn"},
         {"times", 6},
         {"state", "trusted"},
         {"cost_tokens", 5}});
  }
  EXPECT_EQ(record().doubts, 13U);
  EXPECT_EQ(record().state, "trusted");
}

TEST_P(FathomLog, JoinsTheThreeLinesOfAMismatch) {
  Say(LogLevel::kError,
      "Frontend KV block size (16) does not match worker block size (32).\n"
      "Set DYN_KV_CACHE_BLOCK_SIZE=32 on the frontend or configure tokens_per_block=16 on "
      "workers.\nKV-aware routing will not function until block sizes match.",
      {{"worker_id", 4711}, {"url", kUrl}, {"dp_rank", 1}});
  const SizeClash clash{
      .kind = LogKind::kSizeMismatch, .router = 16, .worker = 32, .subject = std::string(kUrl)};
  EXPECT_EQ(facts().clashes, (std::map<SizeClash, uint64_t>{{clash, 1}}));
  EXPECT_EQ(record().state, "doubted");
  EXPECT_EQ(record().cause, "block_size_mismatch");
  EXPECT_EQ(record().evidence, "blocks of 32 tokens by its KV events, 16 configured here");
  EXPECT_EQ(record().fix,
            "Set DYN_KV_CACHE_BLOCK_SIZE=32 on the frontend or configure tokens_per_block=16 on "
            "workers.");
}

TEST_P(FathomLog, TakesTheFixWhateverSettingIsInForce) {
  Say(LogLevel::kError,
      "Frontend KV block size (16) does not match worker block size (32).\n"
      "Set --kv-cache-block-size=32 on the frontend or configure tokens_per_block=16 on workers.\n"
      "KV-aware routing will not function until block sizes match.",
      {{"worker_id", 4711}, {"url", kUrl}, {"dp_rank", 1}});
  EXPECT_TRUE(record().fix.starts_with("Set --kv-cache-block-size=32 on the frontend"));
  Say(LogLevel::kError,
      "Frontend KV block size (16) does not match worker block size (32).\n"
      "Set --kv-cache-block-size=32 on the frontend or configure tokens_per_block=16 on workers.\n"
      "KV-aware routing will not function until block sizes match.",
      {{"worker_id", 4711},
       {"url", kUrl},
       {"dp_rank", 1},
       {"fix", "Unset --kv-cache-block-size on the frontend, which then detects it"}});
  EXPECT_TRUE(record().fix.starts_with("Unset --kv-cache-block-size")) << record().fix;
}

TEST_P(FathomLog, KnowsAMismatchOfWhichOnlyALimitIsKnown) {
  Say(LogLevel::kError,
      "Frontend KV block size (16) does not match worker block size (at least 20).\n"
      "Unset DYN_KV_CACHE_BLOCK_SIZE on the frontend, which finds it out, or configure "
      "tokens_per_block=16 on workers.\n"
      "KV-aware routing will not function until block sizes match.",
      {{"worker_id", 4711}, {"url", kUrl}, {"dp_rank", 1}});
  ASSERT_EQ(facts().clashes.size(), 1U);
  EXPECT_EQ(facts().clashes.begin()->first.worker, 20U);
  EXPECT_TRUE(facts().clashes.begin()->first.at_least);
  EXPECT_TRUE(record().fix.starts_with("Unset DYN_KV_CACHE_BLOCK_SIZE"));
}

TEST_P(FathomLog, NamesEveryWorkerOfAConflict) {
  Say(LogLevel::kError,
      "Workers disagree about the KV block size of model 'm':\n"
      "     16 tokens  http://10.0.0.1:8000 (vllm, by its own report)\n"
      "     32 tokens  http://10.0.0.2:8000 (trtllm, by its KV events)\n"
      "Give all of them one block size (vLLM --block-size, ...), or serve them side by side with "
      "--block-size-conflict=mixed.",
      {{"model", "m"}});
  std::map<std::string, uint32_t> sizes;
  for (const auto& [clash, times] : facts().clashes) sizes[clash.subject] = clash.worker;
  EXPECT_EQ(sizes, (std::map<std::string, uint32_t>{{"http://10.0.0.1:8000", 16},
                                                    {"http://10.0.0.2:8000", 32}}));
  EXPECT_EQ(facts().Of(LogKind::kSizeConflict).lines, 1U);
}

TEST_P(FathomLog, KnowsTheOtherLinesAboutBlockSizes) {
  Say(LogLevel::kInfo, "Auto-configured KV block size to 32 (from worker reports)",
      {{"model", "m"}, {"workers", 4}});
  Say(LogLevel::kWarn,
      "Worker reports KV block size 32, but 16 is configured. Set DYN_KV_CACHE_BLOCK_SIZE=32 on "
      "the frontend or configure --block-size 16 on workers.",
      {{"worker_id", 1}, {"url", "http://a"}, {"engine", "vllm"}});
  Say(LogLevel::kError,
      "KV events of a rank have blocks of 64 tokens, the model's other ranks 32: the "
      "rank is routed by load",
      {{"worker_id", 2}, {"url", "http://b"}, {"dp_rank", 3}});
  Say(LogLevel::kWarn,
      "KV events have blocks of 32 tokens, the worker's own report says 16: the events are "
      "believed",
      {{"worker_id", 3}, {"url", "http://c"}, {"dp_rank", 0}});
  Say(LogLevel::kError,
      "Worker is not admitted: its KV block size (16) is not that of the fleet (32)",
      {{"worker_id", 4}, {"url", "http://d"}, {"model", "m"}, {"fix", "configure it"}});
  Say(LogLevel::kInfo, "KV events of a rank are trusted",
      {{"worker_id", 5}, {"url", "http://e"}, {"dp_rank", 0}, {"block_size", 32}});
  EXPECT_EQ(facts().agreed_sizes, (std::map<std::string, uint32_t>{{"m", 32}}));
  const auto times = [&](LogKind kind, uint32_t router, uint32_t worker, std::string_view url) {
    const auto found = facts().clashes.find(
        {.kind = kind, .router = router, .worker = worker, .subject = std::string(url)});
    return found == facts().clashes.end() ? 0 : found->second;
  };
  EXPECT_EQ(times(LogKind::kReportDiffers, 16, 32, "http://a"), 1U);
  EXPECT_EQ(times(LogKind::kOddRank, 32, 64, "http://b"), 1U);
  EXPECT_EQ(times(LogKind::kStaleReport, 16, 32, "http://c"), 1U);
  EXPECT_EQ(times(LogKind::kWorkerRefused, 32, 16, "http://d"), 1U);
  EXPECT_EQ(facts().trust.at({"http://b", 3}).cause, "block_size_mismatch");
  EXPECT_EQ(facts().trust.at({"http://d", 0}).state, "excluded");
  EXPECT_EQ(facts().trust.at({"http://d", 0}).cause, "block_size_conflict");
  EXPECT_EQ(facts().trust.at({"http://e", 0}).block_size, 32U);
  EXPECT_EQ(facts().trust.at({"http://e", 0}).state, "trusted");
}

TEST_P(FathomLog, TakesAHintForADoubtOnlyUntilThereIsOne) {
  Say(LogLevel::kWarn, "No KV events from a worker; its cache is not known",
      {{"worker_id", 4711}, {"url", kUrl}, {"cause", "the engine's publisher is off"}});
  const TrustRecord& hinted = facts().trust.at({std::string(kUrl), 0});
  EXPECT_EQ(hinted.state, "");
  EXPECT_EQ(hinted.cause, "no_events");
  EXPECT_EQ(hinted.evidence, "the engine's publisher is off");
  Say(LogLevel::kWarn, "KV events were lost; the rank's index entries were cleared",
      {{"worker_id", 4711}, {"url", kUrl}, {"fix", "replay them"}});
  EXPECT_EQ(hinted.cause, "no_events");
  EXPECT_EQ(facts().Of(LogKind::kEventsLost).lines, 1U);
}

TEST_P(FathomLog, ForgetsAnIllnessThatIsOver) {
  const auto say = [&](LogLevel level, std::string_view message) {
    Say(level, message, {{"worker_id", 4711}, {"url", kUrl}});
  };
  say(LogLevel::kWarn, "Worker is not healthy; no requests are sent to it");
  say(LogLevel::kWarn, "No KV events from a worker; its cache is not known");
  EXPECT_EQ(facts().complaints.size(), 2U);
  EXPECT_EQ(facts().trust.at({std::string(kUrl), 0}).state, "excluded");
  say(LogLevel::kInfo, "Worker is healthy");
  EXPECT_EQ(facts().complaints,
            (std::map<Complaint, uint64_t>{
                {{.kind = LogKind::kNoFeed, .worker = std::string(kUrl), .rank = {}}, 2}}));
  EXPECT_EQ(facts().trust.at({std::string(kUrl), 0}).state, "");
  say(LogLevel::kInfo, "Following KV events");
  EXPECT_TRUE(facts().complaints.empty());
}

TEST_P(FathomLog, HoldsNothingAgainstAWorkerThatHasLeft) {
  SayDoubted("no_events", "none", "publish them");
  Say(LogLevel::kWarn, "Worker is not healthy", {{"worker_id", 4711}, {"url", kUrl}});
  Say(LogLevel::kInfo, "Worker removed", {{"worker_id", 4711}, {"url", kUrl}, {"cause", "asked"}});
  EXPECT_TRUE(facts().complaints.empty());
  EXPECT_EQ(record().state, "");
}

TEST_P(FathomLog, BelievesALossOverWhenItsOwnRankIsTrusted) {
  for (const int rank : {0, 1}) {
    Say(LogLevel::kWarn,
        "KV events were lost; the rank's index entries were cleared and are rebuilt from new "
        "events",
        {{"worker_id", 4711}, {"url", kUrl}, {"dp_rank", rank}});
  }
  Say(LogLevel::kInfo, "A rank is learning again", {{"url", kUrl}, {"dp_rank", 0}});
  EXPECT_EQ(facts().complaints.size(), 2U);
  Say(LogLevel::kInfo, "A rank is trusted again", {{"url", kUrl}, {"dp_rank", 0}});
  ASSERT_EQ(facts().complaints.size(), 1U);
  EXPECT_EQ(facts().complaints.begin()->first.rank, 1U);
}

TEST(FathomLines, AMismatchWhoseEndIsMissingStillCounts) {
  LogDigest digest;
  digest.Feed("ERROR Frontend KV block size (16) does not match worker block size (32).\n");
  for (int i = 0; i < 100; ++i) digest.Feed("something else\n");
  EXPECT_EQ(digest.facts().clashes.size(), 1U);
  EXPECT_EQ(digest.facts().clashes.begin()->first.subject, "");
  digest.Feed("Frontend KV block size (16) does not match worker block size (64).\n");
  digest.End();
  EXPECT_EQ(digest.facts().clashes.size(), 2U);
}

// A changed log message fails here, because the doctor reads these messages.
TEST(FathomLines, AreStillWrittenInTheseWords) {
  std::string sources;
  for (const char* file :
       {"fleet/block_size_words.cc", "fleet/trust_keeper.cc", "events/poll_stream.cc",
        "events/intake.cc", "discovery/load_watch.cc", "discovery/prober.cc",
        "discovery/directory.cc", "gateway/prompt_watch.cc"}) {
    std::ifstream in(std::string("src/router/") + file);
    ASSERT_TRUE(in) << file;
    std::ostringstream text;
    text << in.rdbuf();
    sources += text.str();
  }
  const auto written = [&](std::string_view words) {
    return sources.find(words) != std::string::npos;
  };
  for (auto i = static_cast<size_t>(LogKind::kSizeAgreed); i <= size_t(LogKind::kRemoved); ++i) {
    const auto kind = static_cast<LogKind>(i);
    if (kind == LogKind::kRankAgain) continue;  // names the state in its middle
    EXPECT_TRUE(written(Name(kind))) << Name(kind);
  }
  for (const std::string_view words :
       {"\"A rank is {} again\"", "KV-aware routing will not function",
        "does not match worker block", "tokens  {} ({}, by {})", "Give all of them one block size",
        "Set {} on the frontend or configure", "Unset {} on the frontend",
        "unset {} on the frontend", "but {} is configured", "other ranks {}", "report says {}",
        "is not that of the fleet ({})", "{\"cost_tokens\"", "{\"evidence\"", "{\"was\"",
        "{\"times\"", "{\"url\"", "{\"dp_rank\"", "{\"block_size\""}) {
    EXPECT_TRUE(written(words)) << words;
  }
}

}  // namespace
}  // namespace fathom
