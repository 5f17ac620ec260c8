#include "router/fleet/trust_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;
using Likely = TokenDifference::Likely;

constexpr Silence kSilence{.requests = 70, .over = seconds(12)};

TEST(TrustWords, SayNothingWhileAllIsWell) {
  const TrustWords words = WordsOf({}, {});
  EXPECT_EQ(words.evidence, "");
  EXPECT_EQ(words.fix, "");
}

// With each engine's own option names, and in general terms for an unknown engine.
TEST(TrustWords, NameTheSettingOfTheEngine) {
  struct Row {
    Evidence evidence;
    EngineKind engine;
    const char* fix;
  };
  const Row rows[] = {
      {kSilence, EngineKind::kVllm, R"(--kv-events-config '{"enable_kv_cache_events": true)"},
      {kSilence, EngineKind::kSglang, R"(--kv-events-config '{"publisher": "zmq")"},
      {kSilence, EngineKind::kTrtllm, "event_buffer_max_size"},
      {kSilence, EngineKind::kUnknown, "turn on the engine's KV events"},
      {CacheUnused{}, EngineKind::kVllm, "--no-enable-prefix-caching"},
      {CacheUnused{}, EngineKind::kSglang, "--disable-radix-cache"},
      {CacheUnused{}, EngineKind::kTrtllm, "enable_block_reuse: true"},
      {CacheUnused{}, EngineKind::kUnknown, "prefix caching"},
      {LostBatches{}, EngineKind::kVllm, "replay_endpoint"},
      {LostBatches{}, EngineKind::kSglang, "replay_endpoint"},
      {LostBatches{}, EngineKind::kTrtllm, "event_buffer_max_size"},
      {LostBatches{}, EngineKind::kUnknown, "replay endpoint"},
      {Churn{}, EngineKind::kVllm, "--gpu-memory-utilization"},
      {Churn{}, EngineKind::kSglang, "--mem-fraction-static"},
      {Churn{}, EngineKind::kTrtllm, "free_gpu_memory_fraction"},
      {Churn{}, EngineKind::kUnknown, "more memory"},
      {TokenDifference{.located = true}, EngineKind::kVllm, "start vLLM without --chat-template"},
      {TokenDifference{.located = true}, EngineKind::kSglang,
       "start SGLang without --chat-template"},
      {TokenDifference{.located = true}, EngineKind::kTrtllm, "TensorRT-LLM"},
      {TokenDifference{.located = true}, EngineKind::kUnknown, "the same chat template"},
      {LateEvents{}, EngineKind::kVllm, "--event-lag-limit"},
  };
  for (const Row& row : rows) {
    EXPECT_THAT(WordsOf(row.evidence, {.engine = row.engine}).fix, HasSubstr(row.fix));
  }
}

TEST(TrustWords, TellTheNumbers) {
  struct Row {
    Evidence evidence;
    std::vector<const char*> numbers;
  };
  const Row rows[] = {
      {kSilence, {"70 requests", "12 s", "but no KV event"}},
      {Silence{.heard_before = true}, {"no new KV event"}},
      {CacheUnused{.repeats = 9}, {"9 requests"}},
      {CacheUnused{.reported = true}, {"the engine reports"}},
      {UnknownGroups{3}, {"3 cache groups"}},
      {LostBatches{.lost = 5, .gaps = 2, .repaired = 7}, {"5 event", "2 gaps", "7 were recovered"}},
      {LateEvents{.lag = milliseconds(4200), .limit = seconds(2)}, {"4.2 s", "2.0 s", "clock"}},
      {LateEvents{.after_first_byte = true}, {"first byte"}},
      {PredictionDrift{.requests = 20, .predicted = 800, .cached = 90},
       {"all requests", "last 20", "800 tokens", "90 were found"}},
      {Churn{.requests = 40,
             .evicted = 900,
             .reused = 100,
             .stores = 61,
             .removals = 62,
             .lifetime = seconds(33)},
       {"900 of 1000 repeated tokens", "40 requests", "61 blocks", "62 removed", "33 s"}},
      {TokenDifference{.requests = 4}, {"4 requests"}},
      {TokenDifference{.requests = 4, .located = true, .position = 17, .ours = 5, .theirs = 6},
       {"position 17", "token 6", "expected 5", "4 requests"}},
  };
  for (const Row& row : rows) {
    const std::string said = WordsOf(row.evidence, {}).evidence;
    for (const char* const number : row.numbers) EXPECT_THAT(said, HasSubstr(number));
  }
}

TEST(TrustWords, TellWhyNobodyFollowsASilentEngine) {
  const auto words = [](NoFeed kind) {
    return WordsOf(kSilence, {.engine = EngineKind::kVllm,
                              .problem = {.kind = kind, .text = "bind tcp://*:5557"}});
  };
  EXPECT_THAT(words(NoFeed::kPublisherOff).evidence, HasSubstr("publisher is off"));
  EXPECT_THAT(words(NoFeed::kDialsOut).evidence, HasSubstr("instead of binding"));
  EXPECT_EQ(words(NoFeed::kDialsOut).fix, "bind tcp://*:5557");
  EXPECT_THAT(words(NoFeed::kOther).evidence, HasSubstr("bind tcp://*:5557"));
  EXPECT_THAT(words(NoFeed::kNone).evidence, HasSubstr("address of its KV events is unknown"));
}

TEST(TrustWords, TellWhereTheWayToASilentEngineEnds) {
  FeedStatus feed(WorkerId(1), 0, "tcp://a:5557");
  const auto words = [&](FeedReach reach) {
    feed.reach = reach;
    return WordsOf(kSilence, {.feed = &feed});
  };
  EXPECT_THAT(words(FeedReach::kRefused).evidence, HasSubstr("nothing listens at tcp://a:5557"));
  EXPECT_THAT(words(FeedReach::kRefused).fix, HasSubstr("--kv-events-port"));
  EXPECT_THAT(words(FeedReach::kTimeout).fix, HasSubstr("firewall"));
  EXPECT_THAT(words(FeedReach::kUnresolved).evidence, HasSubstr("cannot be resolved"));
  EXPECT_THAT(words(FeedReach::kOpen).evidence, HasSubstr("not a ZeroMQ publisher"));
  EXPECT_THAT(words(FeedReach::kUnknown).evidence, HasSubstr("tcp://a:5557 is not connected"));
  feed.connected = true;
  EXPECT_THAT(words(FeedReach::kRefused).evidence, HasSubstr("connected, but no events arrive"));
  EXPECT_THAT(words(FeedReach::kRefused).fix, HasSubstr("topic"));
  feed.stray_messages.Set(3);
  EXPECT_THAT(words(FeedReach::kRefused).evidence, HasSubstr("not KV events"));
  EXPECT_THAT(words(FeedReach::kRefused).fix, HasSubstr("a port of its own"));
}

TEST(TrustWords, ShowTokensAsTheirVocabularySpellsThem) {
  const TokenPieces pieces = [](std::string_view model, TokenId id) -> std::string {
    EXPECT_EQ(model, "m");
    if (id == 1) return "<s>";
    if (id == 2) return "a\nb\x01";
    if (id == 3) return std::string(1000, 'x');
    return "";
  };
  const auto said = [&](TokenId theirs) {
    return WordsOf(TokenDifference{.located = true, .theirs = theirs, .model = "m"},
                   {.pieces = &pieces})
        .evidence;
  };
  EXPECT_THAT(said(1), HasSubstr("token 1 '<s>'"));
  EXPECT_THAT(said(2), HasSubstr("token 2 'a\\nb\\x01'"));
  EXPECT_LT(said(3).size(), 300u);
  EXPECT_THAT(said(4), HasSubstr("token 4,"));
}

TEST(TrustWords, TellOfAProbeAndOfAllKindsThatDiffer) {
  TokenDifference difference{.located = true,
                             .position = 7,
                             .ours = 5,
                             .theirs = std::nullopt,
                             .kind = PromptKind::kTools,
                             .others_agree = true,
                             .probed = true};
  difference.kinds.set(static_cast<size_t>(PromptKind::kTools));
  difference.kinds.set(static_cast<size_t>(PromptKind::kMessages));
  const auto words = WordsOf(difference, {});
  EXPECT_THAT(words.evidence, HasSubstr("only chats with tools, requests to /v1/messages differ"));
  EXPECT_THAT(words.evidence, HasSubstr("at position 7 of a probe prompt of chats with tools"));
  EXPECT_THAT(words.evidence, HasSubstr("token none (its prompt ends there), the router 5"));
  EXPECT_THAT(words.fix, HasSubstr("for chats with tools, requests to /v1/messages: compare"));
  difference.located = false;
  difference.our_count = 55;
  difference.their_count = 57;
  EXPECT_THAT(WordsOf(difference, {}).evidence, HasSubstr("counts 57 tokens, the router 55"));
}

TEST(TrustWords, NameTheLikelyCauseOfOtherTokens) {
  struct Row {
    Likely likely;
    const char* evidence;
    const char* fix;
  };
  for (const Row& row : {Row{Likely::kTemplate, "a different chat template", "template"},
                         Row{Likely::kExtraFirst, "adds a first token", "add_bos_token"},
                         Row{Likely::kMissingFirst, "omits the first", "add_bos_token"},
                         Row{Likely::kVocabulary, "a different vocabulary", "--tokenizer-path"}}) {
    const auto words = WordsOf(TokenDifference{.located = true, .likely = row.likely}, {});
    EXPECT_THAT(words.evidence, HasSubstr(row.evidence));
    EXPECT_THAT(words.fix, HasSubstr(row.fix));
  }
}

TEST(TrustWords, NameTheKindOfPromptWhoseTokensDiffer) {
  const auto words = [](PromptKind kind, bool others_agree) {
    return WordsOf(
        TokenDifference{.requests = 4, .located = true, .kind = kind, .others_agree = others_agree},
        {.engine = EngineKind::kVllm});
  };
  const TrustWords one = words(PromptKind::kDeveloper, true);
  EXPECT_THAT(one.evidence, HasSubstr("only chats with the role developer differ: at position 0"));
  EXPECT_THAT(one.evidence, HasSubstr("other prompts agree"));
  EXPECT_THAT(one.evidence, Not(HasSubstr("a different chat template")));
  EXPECT_THAT(one.fix, HasSubstr("for chats with the role developer: compare `fathom tokenize`"));
  EXPECT_THAT(words(PromptKind::kMedia, true).fix, HasSubstr("routed by load"));
  const TrustWords all = words(PromptKind::kDeveloper, false);
  EXPECT_THAT(all.evidence, Not(HasSubstr("developer")));
  EXPECT_THAT(all.fix, HasSubstr("--chat-template"));
}

TEST(TrustWords, SayWhichRequestsDrift) {
  PredictionDrift drift{.space = PromptSpace::kSalted, .others_fine = true};
  EXPECT_THAT(WordsOf(drift, {}).evidence, HasSubstr("requests with a cache_salt:"));
  EXPECT_THAT(WordsOf(drift, {}).evidence, HasSubstr("other requests match their predictions"));
  EXPECT_THAT(WordsOf(drift, {}).fix,
              HasSubstr("events include the LoRA adapter and the cache_salt"));
  drift.space = PromptSpace::kAdapter;
  EXPECT_THAT(WordsOf(drift, {}).evidence, HasSubstr("requests with a LoRA adapter:"));
  drift.more = true;
  EXPECT_THAT(WordsOf(drift, {}).fix,
              HasSubstr("the engine shares blocks that the router keeps separate"));
  drift.more = drift.others_fine = false;
  EXPECT_THAT(WordsOf(drift, {}).evidence, HasSubstr("all requests:"));
  EXPECT_THAT(WordsOf(drift, {}).evidence, Not(HasSubstr("match their predictions")));
  EXPECT_THAT(WordsOf(drift, {}).fix, HasSubstr("evicts blocks without an event"));
}

}  // namespace
}  // namespace fathom
