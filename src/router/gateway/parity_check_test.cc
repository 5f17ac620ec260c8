// The check against raw engines, whose every answer the test decides.
#include "router/gateway/parity_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <mutex>

#include "testing/becomes.h"
#include "testing/loop_thread.h"
#include "testing/model_fixture.h"
#include "testing/raw_socket.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using Verdict = ParityVerdict;

constexpr std::string_view kToolTemplate =
    "{% if tools %}[{{ tools | length }}]{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }} {{ m.content }}<|im_end|>{% endfor %}";
constexpr std::string_view kOtherTools =
    "{% if tools %}({{ tools | length }}){% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }} {{ m.content }}<|im_end|>{% endfor %}";

class ParityCheckTest : public testing::Test {
 protected:
  ParityCheckTest() { theirs_ = SmallModel(kToolTemplate); }
  ~ParityCheckTest() override {
    thread_.Call([this] { check_.reset(); });
    thread_.Stop();
    server_.Stop();
  }

  void Join() {
    WorkerRequest request;
    request.url = server_.url();
    worker_ = *directory_.Join(request);
    fleet_.SetModels(worker_->id(), {.models = {"m"}, .cards = {"{}"}});
    fleet_.SetHealthy(worker_->id());
  }
  void Check() {
    const int before = done_;
    thread_.Call([this] { check_->Begin(worker_, [this] { ++done_; }); });
    ASSERT_TRUE(Becomes([&] { return done_ > before; }));
  }
  // As the prober does at its health checks.
  bool IsRepeatedUntil(const std::function<bool()>& condition) {
    return Becomes([&] {
      thread_.Call([this] { check_->Repeat(worker_); });
      return condition();
    });
  }
  Verdict Of(PromptKind kind) const { return board_.Of("m", kind); }
  bool Doubts(PromptKind kind) const {
    return worker_->ranks.only().witness.Credit(PromptSpace::kPlain, kind) == 0;
  }

  // /tokenize of vLLM, by the model `theirs_`.
  void Answer(RawSocket& socket) {
    for (;;) {
      const std::string head = socket.ReadUntil("\r\n\r\n");
      const size_t length = head.find("content-length: ");
      if (length == std::string::npos) return;
      const std::string body = socket.Read(std::stoul(head.substr(length + 16)));
      std::string answer = "{}";
      int status = 404;
      if (head.starts_with("POST /tokenize ")) {
        ++asked_;
        status = status_;
        if (status == 200) answer = Tokenize(body);
      }
      const std::string wire = fmt::format("HTTP/1.1 {} X\r\ncontent-length: {}\r\n\r\n{}", status,
                                           answer.size(), answer);
      if (!socket.Send(wire)) return;
    }
  }
  std::string Tokenize(const std::string& body) {
    const std::lock_guard lock(mutex_);
    const auto fields = ReadRequestFields(body);
    const bool chat = !fields->parts.messages.empty();
    const auto tokens =
        TokensByFiles(*theirs_, PartsOf(fields->parts, chat ? kInChats : kInCompletions), {});
    return fmt::format(R"({{"tokens":[{}]}})", fmt::join(*tokens, ","));
  }
  void SetTheirs(std::string_view source) {
    const std::lock_guard lock(mutex_);
    theirs_ = SmallModel(source);
  }

  std::mutex mutex_;
  std::shared_ptr<const LanguageModel> theirs_;  // guarded by mutex_
  std::atomic<int> status_{200};
  std::atomic<int> asked_{0};
  std::atomic<int> done_{0};
  ScriptedServer server_{[this](RawSocket& socket) { Answer(socket); }};
  Log log_{2, LogLevel::kOff};
  Loop control_;  // never runs: no worker is probed
  Resolver resolver_;
  Fleet fleet_{BreakerOptions{}};
  Prober prober_{control_, resolver_, fleet_, ProbeOptions{}, log_};
  Directory directory_{fleet_, prober_,
                       [](const std::string&) { return std::optional<std::string>(); }, log_};
  ModelLibrary models_ = ModelLibrary::Of(SmallModel(kToolTemplate));
  TokenizerBuilds builds_{log_};
  ParityBoard board_;
  Registry registry_;
  LoopThread thread_;
  std::shared_ptr<Worker> worker_;
  std::unique_ptr<ParityCheck> check_ =
      std::make_unique<ParityCheck>(thread_.loop(), resolver_, directory_, fleet_, models_, builds_,
                                    board_, registry_, log_, false, milliseconds(10));
};

TEST_F(ParityCheckTest, AsksAnEngineThatAgreesOnce) {
  Join();
  EXPECT_TRUE(check_->Concerns(*worker_));
  Check();
  EXPECT_EQ(Of(PromptKind::kText), Verdict::kAgrees);
  EXPECT_EQ(Of(PromptKind::kTools), Verdict::kAgrees);
  EXPECT_EQ(Of(PromptKind::kResponses), Verdict::kUnknown) << "the engine was not asked for it";
  EXPECT_EQ(Of(PromptKind::kMedia), Verdict::kUnknown);
  const int asked = asked_;
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(milliseconds(10));
    thread_.Call([this] { check_->Repeat(worker_); });
  }
  EXPECT_EQ(asked_, asked);
}

TEST_F(ParityCheckTest, DoubtsTheKindThatDiffersUntilItAgrees) {
  SetTheirs(kOtherTools);
  Join();
  Check();
  EXPECT_EQ(Of(PromptKind::kTools), Verdict::kDiffers);
  EXPECT_EQ(Of(PromptKind::kChat), Verdict::kAgrees);
  EXPECT_TRUE(Doubts(PromptKind::kTools));
  EXPECT_FALSE(Doubts(PromptKind::kChat));
  // An engine that does not answer shows nothing new.
  status_ = 500;
  const int asked = asked_;
  ASSERT_TRUE(IsRepeatedUntil([&] { return asked_ > asked + 1; }));
  EXPECT_TRUE(Doubts(PromptKind::kTools));
  SetTheirs(kToolTemplate);
  status_ = 200;
  EXPECT_TRUE(IsRepeatedUntil([&] { return !Doubts(PromptKind::kTools); }));
  EXPECT_EQ(Of(PromptKind::kTools), Verdict::kAgrees);
}

TEST_F(ParityCheckTest, AsksAgainWhereAnEngineDidNotAnswer) {
  status_ = 503;
  Join();
  Check();
  EXPECT_EQ(asked_, 1) << "one failure is enough";
  EXPECT_EQ(Of(PromptKind::kChat), Verdict::kUnknown);
  status_ = 200;
  EXPECT_TRUE(IsRepeatedUntil([&] { return Of(PromptKind::kChat) == Verdict::kAgrees; }));
}

// Two workers join at once: one is asked which build its engine has, and answers late.
TEST_F(ParityCheckTest, ComparesAgainWhenAnotherBuildWasChosen) {
  const auto model = LanguageModel::Parse(
      {.tokenizer =
           R"({"added_tokens":[],"normalizer":null,"pre_tokenizer":null,"post_processor":null,)"
           R"("decoder":null,"model":{"type":"BPE","vocab":{"▁":0,"d":1,"e":2,"p":3,"t":4,"h":5},)"
           R"("merges":[]}})",
       .tokenizer_config = R"({"tokenizer_class":"LlamaTokenizer"})"});
  ASSERT_TRUE(model && (*model)->by_file());
  theirs_ = (*model)->by_file();
  const ModelLibrary models = ModelLibrary::Of(*model);
  thread_.Call([&] {
    check_ = std::make_unique<ParityCheck>(thread_.loop(), resolver_, directory_, fleet_, models,
                                           builds_, board_, registry_, log_, false,
                                           std::chrono::hours(1));
  });
  ASSERT_TRUE(builds_.ShouldAsk(**model, thread_.loop().now())) << "the other worker is asked";
  Join();
  Check();
  EXPECT_EQ(Of(PromptKind::kText), Verdict::kDiffers);
  const auto telling = (*(*model)->by_file()->Borrow()).Encode((*model)->telling_text(), true);
  builds_.Hear(**model, "m", *telling);
  EXPECT_TRUE(IsRepeatedUntil([&] { return Of(PromptKind::kText) == Verdict::kAgrees; }));
  EXPECT_TRUE(Becomes([&] { return !Doubts(PromptKind::kText); }));
  thread_.Call([this] { check_.reset(); });
}

TEST_F(ParityCheckTest, NotesThatAnEngineCannotBeAsked) {
  status_ = 404;
  Join();
  Check();
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(board_.Of("m"), Verdict::kCannotAsk);
}

TEST_F(ParityCheckTest, TakesAnEngineThatRefusesEveryQuestionForOneThatCannotBeAsked) {
  status_ = 400;
  Join();
  Check();
  EXPECT_EQ(board_.Of("m"), Verdict::kCannotAsk);
}

TEST_F(ParityCheckTest, HoldsForEveryNameOfAModel) {
  Join();
  fleet_.SetModels(worker_->id(), {.models = {"a", "b", "m"}, .cards = {"{}", "{}", "{}"}});
  Check();
  for (const char* const name : {"a", "b", "m"}) EXPECT_EQ(board_.Of(name), Verdict::kAgrees);
  fleet_.SetModels(worker_->id(), {.models = {"b"}, .cards = {"{}"}});
  Check();
  EXPECT_EQ(board_.Of("a"), Verdict::kUnknown) << "it does not serve this one any more";
  EXPECT_EQ(board_.Of("b"), Verdict::kAgrees);
}

TEST_F(ParityCheckTest, ForgetsAWorkerThatLeft) {
  Join();
  Check();
  thread_.Call([this] { check_->Forget(worker_->id()); });
  EXPECT_EQ(board_.Of("m"), Verdict::kUnknown);
}

TEST_F(ParityCheckTest, HasNothingToAskWithoutFiles) {
  models_ = ModelLibrary();
  Join();
  EXPECT_FALSE(check_->Concerns(*worker_));
  Check();
  EXPECT_EQ(asked_, 0);
  // Until there are some.
  thread_.Call([this] { models_ = ModelLibrary::Of(SmallModel(kToolTemplate)); });
  EXPECT_TRUE(IsRepeatedUntil([&] { return Of(PromptKind::kChat) == Verdict::kAgrees; }));
}

}  // namespace
}  // namespace fathom
