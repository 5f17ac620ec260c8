// A simulated engine behind HTTP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/text.h"
#include "codec/sse.h"
#include "lab/mock/toy_tokenizer.h"
#include "testing/mock_server_fixture.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string Quoted(std::string_view text) {
  std::string out;
  AppendJsonString(out, text);
  return out;
}

class SimulatedServerTest : public MockServerTest {
 protected:
  SimulatedServerTest() {
    options_.profile = "h200-llama-3.1-8b";
    options_.speedup = 1000;
  }

  Json PostJson(std::string_view path, std::string_view body, Headers headers = {}) {
    const auto answer = Post(path, body, std::move(headers));
    EXPECT_TRUE(answer) << answer.error().what;
    auto json = Json::Parse(answer->body);
    EXPECT_TRUE(json) << answer->body;
    return *std::move(json);
  }

  static const Json& Choice(const Json& answer, size_t i = 0) {
    return (*answer.Find("choices")->array())[i];
  }
  static std::string Content(const Json& answer) {
    return *Choice(answer).Find("message")->Find("content")->string();
  }
  static uint64_t Usage(const Json& answer, std::string_view key) {
    return *answer.Find("usage")->Find(key)->unsigned_integer();
  }
  static uint64_t Cached(const Json& answer) {
    const Json* details = answer.Find("usage")->Find("prompt_tokens_details");
    return *details->Find("cached_tokens")->unsigned_integer();
  }
};

TEST_F(SimulatedServerTest, AnswersAChatAsWorkerAndRank) {
  Start();
  const Json answer =
      PostJson(kChatPath, R"({"messages":[{"role":"user","content":"hello"}],"max_tokens":12})");
  EXPECT_THAT(Content(answer), StartsWith("m/0: "));
  EXPECT_EQ(ToyTokens(Content(answer)).size(), 12u);
  EXPECT_EQ(*Choice(answer).Find("finish_reason")->string(), "length");
  EXPECT_EQ(Usage(answer, "prompt_tokens"), 5u);  // user, "hell", "o", end, assistant
  EXPECT_EQ(Usage(answer, "completion_tokens"), 12u);
  EXPECT_EQ(Usage(answer, "total_tokens"), 17u);
  EXPECT_EQ(Stat("completed"), 1u);
}

TEST_F(SimulatedServerTest, FindsEveryTurnOfAConversationInItsCache) {
  Start();
  std::string messages;
  uint64_t shared = 0;  // tokens of the turn before, with its answer
  for (int turn = 0; turn < 5; ++turn) {
    messages += (turn > 0 ? "," : "") +
                fmt::format(R"({{"role":"user","content":"turn {} with some words in it"}})", turn);
    const Json answer =
        PostJson(kChatPath, fmt::format(R"({{"messages":[{}],"max_tokens":37}})", messages));
    // The last token that was generated is not in the cache: nobody has computed with it.
    const uint64_t prompt = Usage(answer, "prompt_tokens");
    const uint64_t held = shared == 0 ? 0 : shared - 1;
    EXPECT_EQ(Cached(answer), std::min(held / 16 * 16, (prompt - 1) / 16 * 16)) << turn;
    shared = prompt + 37;
    messages += fmt::format(R"(,{{"role":"assistant","content":{}}})", Quoted(Content(answer)));
  }
  EXPECT_GT(server_->statistics().counters.cached_tokens, 100u);
}

TEST_F(SimulatedServerTest, StreamsTheSameTextThatItAnswersWhole) {
  Start();
  const std::string request = R"("messages":[{"role":"user","content":"x"}],"max_tokens":9)";
  const std::string whole = Content(PostJson(kChatPath, "{" + request + "}"));
  const auto stream = Post(kChatPath, "{" + request +
                                          R"(,"stream":true,"return_token_ids":true,)"
                                          R"("stream_options":{"include_usage":true}})");
  EXPECT_THAT(stream->body, EndsWith("data: [DONE]\n\n"));
  EXPECT_THAT(stream->body,
              HasSubstr(R"("delta":{"role":"assistant","content":""},"logprobs":null,)"
                        R"("finish_reason":null}],"prompt_token_ids":[258,)"));
  EXPECT_THAT(stream->body, HasSubstr(R"("finish_reason":"length","stop_reason":null,)"));
  EXPECT_THAT(stream->body, HasSubstr(R"("choices":[],"usage":{"prompt_tokens":4,)"));
  std::string said;
  std::string_view rest = stream->body;
  for (size_t at = rest.find(R"("content":")"); at != rest.npos; at = rest.find(R"("content":")")) {
    rest.remove_prefix(at + 11);
    said += rest.substr(0, rest.find('"'));
  }
  EXPECT_EQ(said, whole);
}

TEST_F(SimulatedServerTest, CompletesTextsAndTokens) {
  Start();
  const Json text = PostJson(kTextPath, R"({"prompt":"a b","max_tokens":5})");
  const std::string said = *Choice(text).Find("text")->string();
  EXPECT_THAT(said, StartsWith(" m/0:"));
  std::vector<TokenId> joined = ToyTokens("a b");
  AppendToyTokens(joined, said);
  EXPECT_EQ(ToyTokens("a b" + said), joined);
  const Json ids =
      PostJson(kTextPath, R"({"prompt":[[5,6,7],[8]],"max_tokens":2,"return_token_ids":true})");
  ASSERT_EQ(ids.Find("choices")->array()->size(), 2u);
  EXPECT_EQ(Usage(ids, "prompt_tokens"), 4u);
  EXPECT_EQ(Choice(ids, 1).Find("prompt_token_ids")->array()->size(), 1u);
  EXPECT_EQ(Choice(ids, 1).Find("token_ids")->array()->size(), 2u);
}

TEST_F(SimulatedServerTest, GivesAsManyChoicesAsAskedFor) {
  Start();
  const Json answer =
      PostJson(kChatPath, R"({"messages":[{"role":"user","content":"x"}],"n":3,"max_tokens":20})");
  ASSERT_EQ(answer.Find("choices")->array()->size(), 3u);
  EXPECT_NE(*Choice(answer, 0).Find("message")->Find("content")->string(),
            *Choice(answer, 1).Find("message")->Find("content")->string());
  EXPECT_EQ(Usage(answer, "completion_tokens"), 60u);
  EXPECT_EQ(Usage(answer, "prompt_tokens"), 4u);
}

TEST_F(SimulatedServerTest, StopsBeforeAStopString) {
  Start();
  const Json answer = PostJson(kChatPath, R"({"messages":[{"role":"user","content":"x"}],)"
                                          R"("stop":[": ","zz"],"max_tokens":50})");
  EXPECT_EQ(Content(answer), "m/0");
  EXPECT_EQ(*Choice(answer).Find("finish_reason")->string(), "stop");
  EXPECT_EQ(*Choice(answer).Find("stop_reason")->string(), ": ");
  EXPECT_LT(Usage(answer, "completion_tokens"), 5u);
  EXPECT_EQ(server_->statistics().running, 0u);
}

TEST_F(SimulatedServerTest, AnswersFromTheRankThatTheHeaderNames) {
  options_.dp_size = 3;
  Start();
  const std::string_view body = R"({"messages":[{"role":"user","content":"x"}],"max_tokens":8})";
  for (int rank = 0; rank < 3; ++rank) {
    const std::string wanted = std::to_string(rank);
    EXPECT_THAT(Content(PostJson(kChatPath, body, {{"X-data-parallel-rank", wanted}})),
                StartsWith("m/" + wanted + ": "));
  }
  for (const std::string wanted : {"3", "-1"}) {
    const auto refused = Post(kChatPath, body, {{"x-data-parallel-rank", wanted}});
    EXPECT_EQ(refused->status, 400);
    EXPECT_EQ(
        refused->body,
        fmt::format(R"({{"error":{{"message":"data_parallel_rank {} is out of range [0, 3).",)"
                    R"("type":"BadRequestError","param":null,"code":400}}}})",
                    wanted));
  }
  EXPECT_EQ(Post(kChatPath, body, {{"x-data-parallel-rank", "one"}})->status, 200);
}

TEST_F(SimulatedServerTest, RefusesAPromptThatCannotFit) {
  options_.num_blocks = 17;  // 256 tokens
  Start();
  std::string ids = "[0";
  for (int i = 1; i < 300; ++i) ids += "," + std::to_string(i);
  const auto refused = Post(kTextPath, R"({"max_tokens":1,"prompt":)" + ids + "]}");
  EXPECT_EQ(refused->status, 400);
  EXPECT_THAT(refused->body,
              HasSubstr("This model's maximum context length is 256 tokens. However, your prompt "
                        "contains 300 input tokens"));
  EXPECT_THAT(refused->body, HasSubstr(R"("param":"input_tokens","code":400)"));
  EXPECT_EQ(Post(kTextPath, R"({"max_tokens":257,"prompt":[1,2]})")->status, 400);
  EXPECT_EQ(Post(kTextPath, R"({"max_tokens":256,"prompt":[1,2]})")->status, 200)
      << "the answer takes what the prompt leaves";
  EXPECT_EQ(Post(kTextPath, R"({"prompt":[]})")->status, 400);
  EXPECT_EQ(Post(kTextPath, R"({"prompt":[1],"max_tokens":0})")->status, 400);
}

TEST_F(SimulatedServerTest, KeepsSaltsApart) {
  Start();
  const std::string prompt =
      R"({"prompt":"a long enough prompt: 0123456789 0123456789 0123456789 0123456789 0123456789",)";
  const auto cached = [&](std::string_view salt) {
    const std::string body = fmt::format(R"({}"cache_salt":"{}","max_tokens":1}})", prompt, salt);
    return Cached(PostJson(kTextPath, body));
  };
  EXPECT_EQ(cached("a"), 0u);
  EXPECT_GT(cached("a"), 0u);
  EXPECT_EQ(cached("b"), 0u);
}

TEST_F(SimulatedServerTest, ResetsItsCache) {
  Start();
  const std::string body =
      R"({"prompt":"a long enough prompt: 0123456789 0123456789 0123456789 0123456789 0123456789","max_tokens":1})";
  PostJson(kTextPath, body);
  EXPECT_GT(Cached(PostJson(kTextPath, body)), 0u);
  EXPECT_EQ(Post("/reset_prefix_cache", "")->body, R"({"success":true})");
  EXPECT_EQ(Cached(PostJson(kTextPath, body)), 0u);
}

TEST_F(SimulatedServerTest, TokenizesAndDetokenizes) {
  Start();
  EXPECT_EQ(Post("/tokenize", R"({"prompt":"abc a"})")->body,
            fmt::format(R"({{"count":2,"max_model_len":131072,"tokens":[{},{}],)"
                        R"("token_strs":null}})",
                        66048 + 0x616263, 512 + 0x2061));
  EXPECT_THAT(Post("/tokenize", R"({"messages":[{"role":"user","content":"a"}]})")->body,
              HasSubstr(R"("tokens":[258,97,261,259])"));
  EXPECT_EQ(Post("/detokenize", R"({"tokens":[258,97,261]})")->body,
            R"({"prompt":"<|user|>a<|end|>"})");
  EXPECT_EQ(Post("/tokenize", R"({"prompt":["a"]})")->status, 400);
  EXPECT_EQ(Post("/detokenize", "{}")->status, 400);
}

TEST_F(SimulatedServerTest, HasVllmsFace) {
  options_.dp_size = 2;
  Start();
  PostJson(kTextPath, R"({"prompt":[1,2,3],"max_tokens":4})", {{"x-data-parallel-rank", "1"}});
  const std::string metrics = Get("/metrics")->body;
  for (const std::string_view line :
       {R"(vllm:num_requests_running{engine="1",model_name="mock-model"} 0)",
        R"(vllm:prompt_tokens_total{engine="1",model_name="mock-model"} 3)",
        R"(vllm:generation_tokens_total{engine="1",model_name="mock-model"} 4)",
        R"(vllm:generation_tokens_total{engine="0",model_name="mock-model"} 0)",
        R"(vllm:time_to_first_token_seconds_count{engine="1",model_name="mock-model"} 1)",
        R"(vllm:cache_config_info{block_size="16",)", R"(num_gpu_blocks="32768")"}) {
    EXPECT_THAT(metrics, HasSubstr(line));
  }
  EXPECT_EQ(Get("/kv_event_sources")->body, "{}") << "as vLLM 0.32 without events";
  EXPECT_EQ(Get("/server_info")->status, 200);
  EXPECT_EQ(Get("/get_server_info")->status, 404);
}

TEST_F(SimulatedServerTest, HasSglangsFace) {
  options_.engine = MockedEngine::kSglang;
  Start();
  const Json answer = PostJson(kTextPath, R"({"prompt":[1,2,3],"max_tokens":4,"stop":"m"})");
  EXPECT_EQ(Cached(answer), 0u);
  EXPECT_EQ(*Choice(answer).Find("matched_stop")->string(), "m");
  for (const std::string_view path : {"/server_info", "/get_server_info"}) {
    EXPECT_THAT(Get(path)->body,
                AllOf(HasSubstr(R"("page_size":1,)"), HasSubstr(R"("max_total_num_tokens":262143)"),
                      HasSubstr(R"("kv_events":null)"), HasSubstr(R"("version":"0.5.23")")));
  }
  EXPECT_THAT(Get("/metrics")->body,
              AllOf(HasSubstr("sglang:page_size{"), HasSubstr("sglang:prompt_tokens_total{"),
                    Not(HasSubstr("vllm:"))));
  EXPECT_EQ(Get("/health_generate")->status, 200);
  EXPECT_THAT(Get("/flush_cache")->body, StartsWith("Cache flushed."));
  EXPECT_EQ(Post("/v1/tokenize", R"({"prompt":"a"})")->body,
            R"({"count":1,"max_model_len":131072,"tokens":[97]})");
  EXPECT_EQ(Post(kTextPath, R"({"prompt":[1]})", {{"x-data-parallel-rank", "one"}})->status, 400);
  EXPECT_EQ(Post(kTextPath, R"({"prompt":[1],"routed_dp_rank":1})")->status, 400);
}

TEST_F(SimulatedServerTest, HasTensorRtsFace) {
  options_.engine = MockedEngine::kTrtllm;
  Start();
  EXPECT_EQ(Get("/metrics")->body, "[]");
  EXPECT_THAT(Get("/prometheus/metrics")->body, Not(HasSubstr("trtllm_kv_cache_tokens_per_block")));
  EXPECT_EQ(Get("/health_generate")->status, 200);  // one iteration
  EXPECT_THAT(Get("/prometheus/metrics")->body, HasSubstr("trtllm_kv_cache_tokens_per_block{"));
  EXPECT_THAT(Get("/metrics")->body, HasSubstr(R"("tokensPerBlock":32)"));
  EXPECT_EQ(Get("/metrics")->body, "[]");
  EXPECT_EQ(Post("/tokenize", R"({"prompt":"a"})")->status, 404);
  EXPECT_THAT(Get("/v1/models")->body, Not(HasSubstr("max_model_len")));
}

TEST_F(SimulatedServerTest, StopsGeneratingWhenTheClientLeaves) {
  options_.speedup = 0.001;
  Start();
  EXPECT_FALSE(Post(kTextPath, R"({"prompt":[1],"stream":true})", {}, milliseconds(50)));
  Await([&] { return Stat("cancelled") == 1; });
  Await([&] { return server_->statistics().running + server_->statistics().waiting == 0; });
}

TEST_F(SimulatedServerTest, DiesHangsAndStallsLikeAPacedOne) {
  options_.die_after_tokens = 3;
  Start();
  EXPECT_FALSE(Post(kTextPath, R"({"prompt":[1],"max_tokens":5,"stream":true})"));
  EXPECT_FALSE(Post(kTextPath, R"({"prompt":[1],"max_tokens":5})"));
  EXPECT_EQ(Post(kTextPath, R"({"prompt":[1],"max_tokens":3})")->status, 200);
  EXPECT_FALSE(Post(kTextPath, R"({"prompt":[1],"max_tokens":5,"mock_stall_after":2})", {},
                    milliseconds(100)));
}

TEST_F(SimulatedServerTest, RunsRequestsTogether) {
  options_.speedup = 1;  // a step takes milliseconds
  Start();
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&, i] {
      const auto body = fmt::format(R"({{"prompt":[{}],"max_tokens":20}})", i);
      EXPECT_EQ(Post(kTextPath, body)->status, 200);
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_LT(server_->statistics().counters.steps, 60u);  // one after the other: 80
}

TEST_F(SimulatedServerTest, AbortsNewRequestsWhileOldOnesFinish) {
  options_.speedup = 0.1;
  Start();
  std::thread old([&] {
    EXPECT_THAT(Content(PostJson(kChatPath,
                                 R"({"messages":[{"role":"user","content":"a"}],"max_tokens":5})")),
                StartsWith("m/0:"));
  });
  Await([&] { return server_->statistics().running == 1; });
  server_->AbortNew();
  const Json aborted =
      PostJson(kChatPath, R"({"messages":[{"role":"user","content":"a"}],"max_tokens":5})");
  EXPECT_EQ(*Choice(aborted).Find("finish_reason")->string(), "abort");
  EXPECT_EQ(Content(aborted), "");
  EXPECT_EQ(Get("/health")->status, 200);
  old.join();
}

TEST_F(SimulatedServerTest, FallsSilentWithoutClosingWhatItAnswers) {
  options_.speedup = 0.1;
  Start();
  std::thread client([&] {
    const auto answer =
        Post(kChatPath, R"({"messages":[{"role":"user","content":"a"}],"stream":true})", {},
             milliseconds(600));
    EXPECT_THAT(answer.error().what, HasSubstr("timed out"));
  });
  Await([&] { return server_->statistics().running == 1; });
  server_->FallSilent();
  Await([&] { return !Get("/health"); });
  client.join();
}

TEST_F(SimulatedServerTest, RefusesProfilesThatDoNotExist) {
  options_.profile = "b300-gpt-9";
  const auto started = MockServer::Start(options_, *Address::Numeric("127.0.0.1", 0), 1, log_);
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().what, HasSubstr("b300-gpt-9"));
}

TEST_F(MockServerTest, FallsSilentWhenPaced) {
  options_.first_token_delay = milliseconds(100);
  Start(2);
  std::thread client([&] {
    const auto answer =
        Post(kChatPath, R"({"messages":[{"role":"user","content":"a"}],"stream":true})", {},
             milliseconds(400));
    EXPECT_THAT(answer.error().what, HasSubstr("timed out"));
  });
  Await([&] { return server_->counts().in_flight == 1; });
  server_->FallSilent();
  client.join();
}

TEST_F(MockServerTest, RefusesConnectionsWhenToldTo) {
  options_.refuse = true;
  Start();
  EXPECT_FALSE(Get("/health"));
}

TEST_F(MockServerTest, StartsSlowlyWhenToldTo) {
  options_.slow_start = milliseconds(200);
  Start();
  EXPECT_EQ(Get("/health")->status, 503);
  Await([&] { return Get("/health")->status == 200; });
}

}  // namespace
}  // namespace fathom
