// A simulated engine behind HTTP that is not quite what its pages and its events say, and what it
// tells about tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/mock/toy_tokenizer.h"
#include "testing/mock_server_fixture.h"

namespace fathom {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kPromptText =
    "a text that has some tokens, so that it fills blocks of four";

class MockFaultsTest : public MockServerTest {
 protected:
  MockFaultsTest() {
    options_.profile = "h200-llama-3.1-8b";
    options_.speedup = 1000;
    options_.block_size = 4;
  }

  Json Complete(std::string_view prompt, std::string_view more = {}) {
    const auto answer = Post(kTextPath, Body(prompt, more));
    EXPECT_TRUE(answer) << answer.error().what;
    EXPECT_EQ(answer->status, 200) << answer->body;
    return *Json::Parse(answer->body);
  }
  std::string Stream(std::string_view more = {}) {
    return Post(kTextPath, Body(Quoted(kPromptText), fmt::format(R"(,"stream":true{})", more)))
        ->body;
  }
  void Change(std::string_view faults) {
    const auto answer = Post("/mock/faults", faults);
    EXPECT_EQ(answer->status, 200) << answer->body;
  }

  static std::string Body(std::string_view prompt, std::string_view more) {
    return fmt::format(R"({{"prompt":{},"max_tokens":2{}}})", prompt, more);
  }
  static std::string Quoted(std::string_view text) { return fmt::format("\"{}\"", text); }
  static std::string Ids(TokenId first, size_t count) {
    std::string ids;
    for (size_t i = 0; i < count; ++i) ids += fmt::format("{}{}", i > 0 ? "," : "[", first + i);
    return ids + "]";
  }
  static uint64_t Cached(const Json& answer) {
    const Json* details = answer.Find("usage")->Find("prompt_tokens_details");
    return *details->Find("cached_tokens")->unsigned_integer();
  }
  static std::vector<TokenId> PromptIds(const Json& answer) {
    std::vector<TokenId> ids;
    const Json& choice = answer.Find("choices")->array()->front();
    for (const Json& id : *choice.Find("prompt_token_ids")->array()) {
      ids.push_back(static_cast<TokenId>(*id.unsigned_integer()));
    }
    return ids;
  }
};

TEST_F(MockFaultsTest, TellsWhatItFoundInItsCacheUnlessToldNotTo) {
  Start();
  EXPECT_EQ(Cached(Complete(Ids(1, 21))), 0u);
  EXPECT_EQ(Cached(Complete(Ids(1, 21))), 20u);
  Change(R"({"cached_tokens_report":false})");
  const Json mute = Complete(Ids(1, 21));
  EXPECT_TRUE(mute.Find("usage")->Find("prompt_tokens_details")->is_null());
  const std::string asked = R"(,"stream_options":{"include_usage":true})";
  EXPECT_THAT(Stream(asked), AllOf(HasSubstr(R"("usage":{)"), Not(HasSubstr("details"))));
}

TEST_F(MockFaultsTest, StreamsTheUsageWhenAskedOrForced) {
  Start();
  EXPECT_THAT(Stream(), Not(HasSubstr("usage")));
  const std::string own = R"("choices":[],"usage":{"prompt_tokens":)";
  EXPECT_THAT(Stream(R"(,"stream_options":{"include_usage":true})"), HasSubstr(own));
  Change(R"({"force_usage":true})");
  EXPECT_THAT(Stream(), HasSubstr(own));
  EXPECT_THAT(Stream(R"(,"stream_options":{"include_usage":false})"), HasSubstr(own));
}

TEST_F(MockFaultsTest, PutsTheUsageBesideTheLastChoiceWhenToldTo) {
  for (const std::string_view profile : {std::string_view("h200-llama-3.1-8b"), kPaced}) {
    options_.profile = profile;
    options_.usage_with_choices = true;
    Start();
    EXPECT_THAT(Stream(), Not(HasSubstr("usage")));
    const std::string said = Stream(R"(,"stream_options":{"include_usage":true},"n":2)");
    EXPECT_THAT(said, Not(HasSubstr(R"("choices":[])")));
    const size_t usage = said.find("usage");
    ASSERT_NE(usage, said.npos) << said;
    EXPECT_EQ(said.find("usage", usage + 1), said.npos) << "once";
    EXPECT_EQ(said.find(R"("choices")", usage), said.npos) << "in the last event";
    EXPECT_NE(said.rfind(R"("finish_reason":"length")", usage), said.npos);
  }
}

TEST_F(MockFaultsTest, ComputesAPromptAnewWhoseLogProbabilitiesAreWanted) {
  Start();
  Complete(Ids(1, 21));
  EXPECT_EQ(Cached(Complete(Ids(1, 21), R"(,"prompt_logprobs":1)")), 0u);
  EXPECT_EQ(Cached(Complete(Ids(1, 21), R"(,"prompt_logprobs":null)")), 20u);
}

TEST_F(MockFaultsTest, ReportsTheHitOfACopyAndSumsOverPrompts) {
  Start();
  EXPECT_EQ(Cached(Complete(Ids(1, 21), R"(,"n":2)")), 20u);
  const std::string both = fmt::format("[{},{}]", Ids(1, 21), Ids(1, 9));
  EXPECT_EQ(Cached(Complete(both)), 28u);
}

// The cache holds one of the two that run together, and their prefix is found by both.
TEST_F(MockFaultsTest, ForgetsTheHitOfWhatItPreemptedAsVllmDoes) {
  options_.num_blocks = 20;
  for (const MockedEngine engine : {MockedEngine::kVllm, MockedEngine::kSglang}) {
    options_.engine = engine;
    Start();
    Complete(Ids(1, 9));
    const std::string body =
        fmt::format(R"({{"prompt":[{0},{1}],"max_tokens":50}})", Ids(1, 9), "[1,2,3,4,5,6,7,8,99]");
    const auto answer = Json::Parse(Post(kTextPath, body)->body);
    EXPECT_GT(Stat("preemptions"), 0u);
    EXPECT_EQ(Cached(*answer), engine == MockedEngine::kVllm ? 8u : 16u);
  }
}

TEST_F(MockFaultsTest, SaysOnItsPagesThatItDoesNotCache) {
  options_.prefix_caching = false;
  Start();
  Complete(Ids(1, 21));
  EXPECT_EQ(Cached(Complete(Ids(1, 21))), 0u);
  EXPECT_THAT(Get("/metrics")->body, HasSubstr(R"(enable_prefix_caching="False")"));
  EXPECT_THAT(Get("/server_info")->body, HasSubstr(R"("enable_prefix_caching":false)"));
  Change(R"({"prefix_caching_report":"none"})");
  EXPECT_THAT(Get("/metrics")->body,
              AllOf(HasSubstr("vllm:cache_config_info"), Not(HasSubstr("enable_prefix_caching"))));
  EXPECT_THAT(Get("/server_info")->body, Not(HasSubstr("enable_prefix_caching")));
}

TEST_F(MockFaultsTest, SaysSoInTheWordsOfTheOtherEngines) {
  options_.prefix_caching = false;
  options_.engine = MockedEngine::kSglang;
  Start();
  EXPECT_THAT(Get("/server_info")->body, HasSubstr(R"("disable_radix_cache":true)"));
  Change(R"({"prefix_caching":true})");
  EXPECT_THAT(Get("/server_info")->body, HasSubstr(R"("disable_radix_cache":false)"));
  options_.engine = MockedEngine::kTrtllm;
  Start();
  EXPECT_THAT(Get("/prometheus/metrics")->body,
              HasSubstr(R"(trtllm_kv_cache_config_info{enable_block_reuse="False"} 1)"));
  Change(R"({"prefix_caching_report":"none"})");
  EXPECT_THAT(Get("/prometheus/metrics")->body, Not(HasSubstr("config_info")));
}

TEST_F(MockFaultsTest, FindsPrefixesOnceCachingIsOn) {
  options_.prefix_caching = false;
  Start();
  Complete(Ids(1, 21));
  Change(R"({"prefix_caching":true})");
  EXPECT_EQ(Cached(Complete(Ids(1, 21))), 0u);
  EXPECT_EQ(Cached(Complete(Ids(1, 21))), 20u);
}

TEST_F(MockFaultsTest, ComputesWithOtherTokensThanItsTokenizerSays) {
  options_.prompt_fault = PromptFault::kBos;
  Start();
  const std::vector<TokenId> true_ids = ToyTokens(kPromptText);
  const auto said = Post("/tokenize", fmt::format(R"({{"prompt":{}}})", Quoted(kPromptText)));
  EXPECT_THAT(said->body, HasSubstr(fmt::format(R"("count":{},)", true_ids.size())));
  const auto used = [&](std::string_view prompt) {
    return PromptIds(Complete(prompt, R"(,"return_token_ids":true)"));
  };
  std::vector<TokenId> with_bos = true_ids;
  with_bos.insert(with_bos.begin(), 1);
  EXPECT_EQ(used(Quoted(kPromptText)), with_bos);
  EXPECT_EQ(used("[5,6,7]"), (std::vector<TokenId>{5, 6, 7})) << "ids are what they are";
  Change(R"({"prompt_fault":"none"})");
  EXPECT_EQ(used(Quoted(kPromptText)), true_ids);
}

TEST_F(MockFaultsTest, KeepsAdaptersApartAndListsThem) {
  options_.loras = {"ada", "bob"};
  Start();
  const auto models = Json::Parse(Get("/v1/models")->body);
  const auto& list = *models->Find("data")->array();
  ASSERT_EQ(list.size(), 3u);
  EXPECT_TRUE(list[0].Find("parent")->is_null());
  EXPECT_EQ(*list[2].Find("id")->string(), "bob");
  EXPECT_EQ(*list[2].Find("parent")->string(), "mock-model");
  Complete(Ids(1, 21));
  EXPECT_EQ(Cached(Complete(Ids(1, 21), R"(,"model":"ada")")), 0u);
  EXPECT_EQ(Cached(Complete(Ids(1, 21), R"(,"model":"bob")")), 0u);
  EXPECT_EQ(Cached(Complete(Ids(1, 21), R"(,"model":"ada")")), 20u);
  EXPECT_EQ(Post(kTextPath, R"({"prompt":"x","model":"eve"})")->status, 404);
}

TEST_F(MockFaultsTest, CountsWhatOneRankComputesThoughAnotherHadIt) {
  options_.dp_size = 2;
  Start();
  const auto ask = [&](std::string rank) {
    const auto answer = Post(kTextPath, Body(Ids(1, 21), {}), {{"x-data-parallel-rank", rank}});
    EXPECT_EQ(answer->status, 200);
  };
  ask("0");
  ask("0");
  EXPECT_EQ(Stat("recomputed_prompt_tokens"), 0u);
  EXPECT_EQ(Stat("cached_prompt_tokens"), 20u);
  ask("1");
  EXPECT_EQ(Stat("recomputed_prompt_tokens"), 20u);
  EXPECT_EQ(Stat("prompt_tokens"), 63u);
  EXPECT_THAT(Get("/metrics")->body,
              AllOf(HasSubstr(R"(mock:recomputed_prompt_tokens_total{model_name="mock-model",)"
                              R"(rank="0"} 0)"),
                    HasSubstr(R"(mock:recomputed_prompt_tokens_total{model_name="mock-model",)"
                              R"(rank="1"} 20)"),
                    HasSubstr(R"(mock:cached_prompt_tokens_total{model_name="mock-model",)"
                              R"(rank="0"} 20)")));
}

TEST_F(MockFaultsTest, SharesALedgerWithOtherServers) {
  options_.ledger = std::make_shared<PrefixLedger>();
  Start();
  Complete(Ids(1, 21));
  const std::unique_ptr<MockServer> first = std::move(server_);
  Start();
  Complete(Ids(1, 21));
  EXPECT_EQ(Stat("recomputed_prompt_tokens"), 20u);
  EXPECT_EQ(first->statistics().counters.recomputed_tokens, 0u);
}

TEST_F(MockFaultsTest, RefusesFaultsThatItDoesNotKnow) {
  Start();
  const auto answer = Post("/mock/faults", R"({"kv_silent":true,"gremlins":3})");
  EXPECT_EQ(answer->status, 400);
  EXPECT_THAT(answer->body, HasSubstr("gremlins: no such fault"));
  EXPECT_THAT(Get("/mock/faults")->body, HasSubstr(R"("kv_silent":false)")) << "all or nothing";
}

TEST_F(MockServerTest, ChangesTheFaultsOfAllItsThreads) {
  options_.busy = true;
  Start(4);
  const std::string_view chat = R"({"messages":[{"role":"user","content":"x"}],"max_tokens":1})";
  EXPECT_EQ(Post("/v1/chat/completions", chat)->status, 503);
  EXPECT_EQ(Post("/mock/faults", R"({"busy":false})")->status, 200);
  // The other threads hear of it a little later.
  int fine = 0;
  Await([&] {
    fine = Post("/v1/chat/completions", chat)->status == 200 ? fine + 1 : 0;
    return fine == 16;
  });
  EXPECT_EQ(Stat("requests"), Stat("completed") + Stat("failed"));
}

}  // namespace
}  // namespace fathom
