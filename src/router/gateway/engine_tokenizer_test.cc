// The tokenizer against raw workers, for which the test controls every byte.
#include "router/gateway/engine_tokenizer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

#include "testing/becomes.h"
#include "testing/loop_thread.h"
#include "testing/raw_socket.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string RawAnswer(std::string_view body, int status = 200) {
  return fmt::format("HTTP/1.1 {} X\r\ncontent-length: {}\r\n\r\n{}", status, body.size(), body);
}

class EngineTokenizerTest : public testing::Test {
 protected:
  ~EngineTokenizerTest() override {
    over_ = true;
    thread_.Call([this] { tokenizer_.reset(); });
    thread_.Stop();
    for (const auto& worker : workers_) worker->Stop();
  }

  struct Call {
    std::string head;
    std::string body;
  };
  // Answers each request on a connection with the result of `script`; empty ends the connection.
  WorkerId AddWorker(std::function<std::string(const Call&)> script, std::string path = "") {
    workers_.push_back(std::make_unique<ScriptedServer>([this, script](RawSocket& socket) {
      ++connections_;
      for (;;) {
        Call call{socket.ReadUntil("\r\n\r\n"), ""};
        const size_t length = call.head.find("content-length: ");
        if (length == std::string::npos) return;
        call.body = socket.Read(std::stoul(call.head.substr(length + 16)));
        {
          const std::lock_guard lock(mutex_);
          calls_.push_back(call);
        }
        const std::string answer = script(call);
        if (answer.empty() || !socket.Send(answer)) return;
      }
    }));
    WorkerRequest request;
    request.url = workers_.back()->url() + path;
    request.api_key_env = "KEY";
    request.from = WorkerRequest::From::kOperator;
    const WorkerId id = (*directory_.Join(request))->id();
    fleet_.SetModels(id, {.models = {"m"}, .cards = {"{}"}, .any_model = false, .adapters = {}});
    fleet_.SetHealthy(id);
    return id;
  }
  WorkerId AddWorker(std::string answer) {
    return AddWorker([answer](const Call&) { return answer; });
  }

  TokenAnswer Ask(const PromptFields& parts, Duration timeout = seconds(20),
                  EngineKind engine = EngineKind::kVllm) {
    TokenQuestion question;
    question.engine = engine;
    question.model = "m";
    question.parts = parts;
    question.fleet = fleet_.Current();
    const TimePoint deadline = std::chrono::steady_clock::now() + timeout;
    return thread_.Complete([&] { return tokenizer_->Tokenize(question, deadline); });
  }
  TokenAnswer Ask() { return Ask({.prompt = R"("hi")"}); }

  static size_t RestsSince(TimePoint begun) {
    const Duration passed = std::chrono::steady_clock::now() - begun;
    return static_cast<size_t>(passed / TokenizeRoster::kRest);
  }

  Call LastCall() {
    const std::lock_guard lock(mutex_);
    return calls_.back();
  }

  Log log_{2, LogLevel::kOff};
  Loop control_;  // never runs: no worker is probed
  Resolver resolver_;
  Fleet fleet_{BreakerOptions{}};
  Prober prober_{control_, resolver_, fleet_, ProbeOptions{}, log_};
  Directory directory_{fleet_, prober_,
                       [](const std::string&) { return std::optional<std::string>("secret"); },
                       log_};
  TokenizeRoster roster_{log_, seconds(20)};
  LoopThread thread_;
  std::shared_ptr<EngineTokenizer> tokenizer_ =
      std::make_shared<EngineTokenizer>(thread_.loop(), resolver_, directory_, roster_);
  std::mutex mutex_;
  std::vector<Call> calls_;  // guarded by mutex_
  std::atomic<int> connections_{0};
  std::atomic<bool> over_{false};
  std::vector<std::unique_ptr<ScriptedServer>> workers_;
};

TEST_F(EngineTokenizerTest, ReadsTheTokensOfATextAndOfAChat) {
  AddWorker(
      RawAnswer(R"({"count":3,"max_model_len":4096,"tokens":[1, 22,333],"token_strs":null})"));
  PromptFields text{.prompt = R"("h\u0069")"};
  text.add_special_tokens = "false";
  auto answer = Ask(text);
  ASSERT_TRUE(answer);
  EXPECT_THAT(*answer, ElementsAre(1, 22, 333));
  EXPECT_THAT(LastCall().head, StartsWith("POST /tokenize HTTP/1.1\r\nhost: 127.0.0.1:"));
  EXPECT_THAT(LastCall().head, HasSubstr("\r\nauthorization: Bearer secret\r\n"));
  EXPECT_EQ(LastCall().body, R"({"model":"m","prompt":"h\u0069","add_special_tokens":false})");

  PromptFields chat;
  chat.messages = R"([{"role":"user", "content":[{"type":"text","text":"\/"}]}])";
  chat.tools = "[1]";
  chat.chat_template_kwargs = R"({"thinking":true})";
  chat.add_generation_prompt = "false";
  answer = Ask(chat);
  ASSERT_TRUE(answer);
  EXPECT_EQ(
      LastCall().body,
      R"({"model":"m","messages":[{"role":"user", "content":[{"type":"text","text":"\/"}]}],)"
      R"("tools":[1],"chat_template_kwargs":{"thinking":true},"add_generation_prompt":false})");
}

TEST_F(EngineTokenizerTest, AsksEachEngineForWhatItsChatsTake) {
  AddWorker(R"(HTTP/1.1 200 X)"
            "\r\ncontent-length: 14\r\n\r\n"
            R"({"tokens":[1]})");
  PromptFields chat;
  chat.messages = "[1]";
  chat.tools = "[2]";
  chat.tool_choice = R"("none")";
  chat.add_generation_prompt = "false";
  chat.reasoning_effort = R"("low")";
  chat.documents = "[3]";
  ASSERT_TRUE(Ask(chat, seconds(20), EngineKind::kSglang));
  EXPECT_EQ(LastCall().body, R"({"model":"m","messages":[1],"tools":[2],)"
                             R"("reasoning_effort":"low","tool_choice":"none"})");
  ASSERT_TRUE(Ask(chat, seconds(20), EngineKind::kVllm));
  EXPECT_EQ(LastCall().body,
            R"({"model":"m","messages":[1],"tools":[2],"chat_template_kwargs":{"documents":[3],)"
            R"("reasoning_effort":"low","enable_thinking":true},"add_generation_prompt":false})");
  chat.chat_template_kwargs = R"({"enable_thinking": true, "reasoning_effort": "high" })";
  chat.reasoning_effort = R"("none")";
  chat.documents = {};
  ASSERT_TRUE(Ask(chat, seconds(20), EngineKind::kVllm));
  EXPECT_THAT(LastCall().body,
              HasSubstr(R"("chat_template_kwargs":{"enable_thinking": true, )"
                        R"("reasoning_effort": "high","reasoning_effort":"none"},)"));
}

TEST_F(EngineTokenizerTest, AsksUnderThePathOfTheWorker) {
  AddWorker([](const Call&) { return RawAnswer(R"({"tokens":[1]})"); }, "/engine");
  ASSERT_TRUE(Ask());
  EXPECT_THAT(LastCall().head, StartsWith("POST /engine/tokenize HTTP/1.1\r\n"));
}

TEST_F(EngineTokenizerTest, KeepsItsConnectionAndReplacesOneThatWasClosed) {
  std::atomic<int> served{0};
  AddWorker(
      [&](const Call&) { return ++served == 4 ? std::string() : RawAnswer(R"({"tokens":[1]})"); });
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(Ask()) << i;
  EXPECT_EQ(connections_, 2);
  EXPECT_EQ(served, 7) << "the question that met the closing connection was asked again";
}

TEST_F(EngineTokenizerTest, SpreadsTheQuestions) {
  std::atomic<int> first{0};
  std::atomic<int> second{0};
  AddWorker([&](const Call&) { return ++first, RawAnswer(R"({"tokens":[1]})"); });
  AddWorker([&](const Call&) { return ++second, RawAnswer(R"({"tokens":[1]})"); });
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Ask());
  EXPECT_EQ(first, 5);
  EXPECT_EQ(second, 5);
}

TEST_F(EngineTokenizerTest, AsksAnotherWorkerWhereOneFails) {
  const TimePoint begun = std::chrono::steady_clock::now();
  const WorkerId broken = AddWorker("");
  const WorkerId busy = AddWorker(RawAnswer("{}", 503));
  AddWorker(RawAnswer(R"({"tokens":[1]})"));
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(Ask()) << i;
  const auto fleet = fleet_.Current();
  for (const WorkerId id : {broken, busy}) {
    EXPECT_FALSE(fleet->Find(id)->worker->breaker.open());
    EXPECT_EQ(fleet->Find(id)->worker->failures.Value(), 0u) << "nobody is blamed for it";
  }
  const size_t rests = RestsSince(begun);
  EXPECT_GE(calls_.size(), 8u) << "each of those two was asked";
  EXPECT_LE(calls_.size(), 8 + 2 * rests) << "and rests after it has failed";
}

TEST_F(EngineTokenizerTest, GoesToTheWorkersThatHaveTheEndpoint) {
  AddWorker(RawAnswer(R"({"detail":"Not Found"})", 404));
  AddWorker(RawAnswer(R"({"tokens":[1]})"));
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(Ask()) << i;
  EXPECT_LE(calls_.size(), 7u) << "the other one is asked once";
}

TEST_F(EngineTokenizerTest, SaysWhereNobodyHasTheEndpoint) {
  AddWorker(RawAnswer(R"({"detail":"Not Found"})", 404));
  AddWorker(RawAnswer("", 405));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Ask(), std::unexpected(TokenFailure::kUnsupported));
  EXPECT_EQ(calls_.size(), 2u);
}

TEST_F(EngineTokenizerTest, TakesAServerForOneWithoutThatFindsNoTokensInAText) {
  AddWorker(RawAnswer(R"({"tokens":[]})"));
  EXPECT_TRUE(Ask({.prompt = R"("")"})) << "where there are none";
  EXPECT_EQ(Ask(), std::unexpected(TokenFailure::kUnsupported));
}

TEST_F(EngineTokenizerTest, TakesARefusalForTheQuestionsFaultAndNotTheWorkers) {
  for (const std::string& refusal :
       {RawAnswer(R"({"error":{"message":"bad"}})", 400), RawAnswer("{}", 422), RawAnswer("", 413),
        RawAnswer(R"({"error":{"message":"The model `m` does not exist."}})", 404)}) {
    const WorkerId id = AddWorker(refusal);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(Ask(), std::unexpected(TokenFailure::kRefused));
    directory_.Leave(id);
  }
  EXPECT_EQ(calls_.size(), 8u) << "each question was asked, and no other worker tried";
}

TEST_F(EngineTokenizerTest, BelievesNoAnswerThatIsNone) {
  for (const std::string& wrong :
       {RawAnswer(""), RawAnswer("[]"), RawAnswer("{"), RawAnswer("{}"),
        RawAnswer(R"({"tokens":null})"), RawAnswer(R"({"tokens":[1,-2]})"),
        RawAnswer(R"({"tokens":[1.5]})"), RawAnswer(R"({"tokens":"1"})"),
        RawAnswer(R"({"tokens":[[1]]})"), RawAnswer(R"({"tokens":[1],"count":2})"),
        RawAnswer(R"({"tokens":[4294967296]})"), RawAnswer("", 500),
        RawAnswer(R"({"tokens":[1]})", 302),
        std::string("HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{\"tokens\":[1]}"),
        std::string("nonsense\r\n\r\n")}) {
    const bool cut = wrong.find("length: 50") != std::string::npos;
    const WorkerId id = AddWorker([wrong, cut, served = false](const Call&) mutable {
      return cut && std::exchange(served, true) ? std::string() : wrong;
    });
    EXPECT_EQ(Ask({.prompt = R"("hi")"}, cut ? milliseconds(50) : milliseconds(20'000)),
              std::unexpected(cut ? TokenFailure::kTimeout : TokenFailure::kError))
        << wrong;
    directory_.Leave(id);
  }
}

TEST_F(EngineTokenizerTest, WaitsNoLongerThanItMay) {
  AddWorker([this](const Call&) {
    while (!over_) std::this_thread::sleep_for(milliseconds(1));
    return std::string();
  });
  const TimePoint begun = std::chrono::steady_clock::now();
  const PromptFields text{.prompt = R"("hi")"};
  EXPECT_EQ(Ask(text, milliseconds(20)), std::unexpected(TokenFailure::kTimeout));
  const TokenAnswer again = Ask(text, milliseconds(20));
  const bool rested = RestsSince(begun) > 0;  // this machine may have paused for as long
  EXPECT_TRUE(rested || again == std::unexpected(TokenFailure::kError)) << "it rests";
}

// Whichever of the two is asked first.
TEST_F(EngineTokenizerTest, AsksASecondWorkerWhenTheFirstIsLate) {
  std::atomic<bool> first{true};
  std::atomic<int> slow{0};
  const auto script = [&](const Call&) {
    if (first.exchange(false)) {
      while (!over_) std::this_thread::sleep_for(milliseconds(1));
      ++slow;
    }
    return RawAnswer(R"({"count":1,"tokens":[7]})");
  };
  AddWorker(script);
  AddWorker(script);
  const auto answer = Ask();  // the second is asked a second later: it waits for 20
  ASSERT_TRUE(answer);
  EXPECT_THAT(*answer, ElementsAre(7));
  EXPECT_EQ(slow, 0) << "the first has not answered yet";
  over_ = true;
  EXPECT_TRUE(Becomes([&] { return roster_.open() == 0; })) << "its answer ends the question too";
}

TEST_F(EngineTokenizerTest, AsksNoThirdWorkerBecauseTwoAreLate) {
  std::atomic<int> asked{0};
  const auto script = [&](const Call&) {
    ++asked;
    while (!over_) std::this_thread::sleep_for(milliseconds(1));
    return RawAnswer(R"({"count":1,"tokens":[7]})");
  };
  for (int i = 0; i < 4; ++i) AddWorker(script);
  EXPECT_EQ(Ask({.prompt = R"("hi")"}, milliseconds(2500)),
            std::unexpected(TokenFailure::kTimeout));
  EXPECT_EQ(asked, 2);
}

TEST_F(EngineTokenizerTest, ReadsALongAnswerInPieces) {
  std::string tokens = "0";
  for (int i = 1; i < 200'000; ++i) tokens += "," + std::to_string(i);
  const std::string body = "{\"tokens\":[" + tokens + "],\"count\":200000}";
  AddWorker("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" +
            fmt::format("{:x}\r\n{}\r\n0\r\n\r\n", body.size(), body));
  const auto answer = Ask();
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->size(), 200'000u);
  EXPECT_EQ(answer->back(), 199'999u);
}

TEST_F(EngineTokenizerTest, HasNobodyToAskInAnEmptyFleet) {
  EXPECT_EQ(Ask(), std::unexpected(TokenFailure::kError));
}

}  // namespace
}  // namespace fathom
