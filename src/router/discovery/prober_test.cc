#include "router/discovery/prober.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "engine/model_name.h"
#include "router/discovery/directory.h"
#include "testing/becomes.h"
#include "testing/loop_thread.h"
#include "testing/raw_socket.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(ReadModels, ReadsWhatVllmAnswers) {
  const auto report = ReadModels(
      200,
      R"({"object":"list","data":[{"id":"meta/llama","object":"model","created":1,"owned_by":"vllm",)"
      R"("root":"meta/llama","parent":null,"max_model_len":4096,"permission":[{"id":"modelperm-1"}]},)"
      R"({"id":"adapter","object":"model","root":"/lora","parent":"meta/llama"}]})");
  EXPECT_FALSE(report.any_model);
  EXPECT_THAT(report.models, ElementsAre("adapter", "meta/llama"));
  ASSERT_EQ(report.cards.size(), 2u);
  EXPECT_THAT(report.cards[0], HasSubstr(R"("id":"adapter")"));
  EXPECT_THAT(report.cards[1], HasSubstr(R"("max_model_len":4096)"));
  EXPECT_THAT(report.adapters, ElementsAre("adapter"));
}

TEST(ReadModels, TakesAnAnswerThatIsNoneForAnythingGoes) {
  for (const char* body : {"", "<html>", "[]", "{}", R"({"data":null})", R"({"data":{"id":"m"}})",
                           R"({"data":[)", "null", R"("data")"}) {
    const auto report = ReadModels(200, body);
    EXPECT_TRUE(report.any_model) << body;
    EXPECT_THAT(report.models, IsEmpty()) << body;
  }
  EXPECT_TRUE(ReadModels(404, R"({"data":[{"id":"m"}]})").any_model);
}

TEST(ReadModels, PassesOverCardsWithoutAName) {
  const auto report =
      ReadModels(200, R"({"data":[1,null,{},{"id":7},{"id":"m"},{"name":"x"},[{"id":"no"}]]})");
  EXPECT_FALSE(report.any_model);
  EXPECT_THAT(report.models, ElementsAre("m"));
}

TEST(ReadModels, KnowsThatNothingIsNotAnything) {
  const auto report = ReadModels(200, R"({"object":"list","data":[]})");
  EXPECT_FALSE(report.any_model);
  EXPECT_THAT(report.models, IsEmpty());
}

// A worker listed twice for a model would get twice its share of the requests.
TEST(ReadModels, NamesAModelOnceThatIsListedTwice) {
  const auto report = ReadModels(200, R"({"data":[{"id":"m","a":1},{"id":"n"},{"id":"m","a":2}]})");
  EXPECT_THAT(report.models, ElementsAre("m", "n"));
  EXPECT_EQ(report.cards.size(), 2u);
}

// A worker whose answers the test changes while it is being probed.
// Used on the loop, except for the counts.
struct SlowCheck : AdmissionCheck {
  bool Concerns(const Worker&) const override { return concerns; }
  void Begin(const std::shared_ptr<Worker>&, std::function<void()> ended) override {
    done = std::move(ended);
    ++begun;
  }
  void Repeat(const std::shared_ptr<Worker>&) override { ++repeated; }
  void Forget(WorkerId) override { ++forgotten; }

  std::atomic<bool> concerns = true;
  std::function<void()> done;
  std::atomic<int> begun = 0;
  std::atomic<int> repeated = 0;
  std::atomic<int> forgotten = 0;
};

class ProberTest : public testing::Test {
 protected:
  explicit ProberTest(ModelSlice slice = {})
      : fleet_(BreakerOptions{}, Fleet::kMaxWorkers, std::move(slice)) {
    options_.interval = milliseconds(5);
    options_.timeout = milliseconds(500);
  }
  ~ProberTest() override {
    if (directory_) directory_->Leave(id_);
    // The watch ends when its sleep or its question does.
    std::this_thread::sleep_for(milliseconds(30));
    server_.reset();
    thread_.Call([] {});
    thread_.Stop();
  }

  void Join(WorkerRequest request = {}) {
    server_ = std::make_unique<ScriptedServer>([this](RawSocket& socket) { Answer(socket); });
    prober_ = std::make_unique<Prober>(thread_.loop(), resolver_, fleet_, options_, log_);
    prober_->SetCheck(check_);
    const auto environment = [](const std::string&) { return std::string("secret"); };
    directory_ = std::make_unique<Directory>(fleet_, *prober_, environment, log_);
    request.url = server_->url();
    id_ = (*directory_->Join(request))->id();
  }

  void Answer(RawSocket& socket) {
    const std::string head = socket.ReadUntil("\r\n\r\n");
    const std::lock_guard lock(mutex_);
    if (head.starts_with("GET /v1/models ")) {
      last_models_request_ = head;
      socket.Send(models_);
    } else {
      last_health_request_ = head;
      socket.Send(health_);
    }
  }

  static std::string Of(int status, std::string_view body = "") {
    return fmt::format("HTTP/1.1 {} X\r\ncontent-length: {}\r\n\r\n{}", status, body.size(), body);
  }
  void SetHealth(const std::string& wire) {
    const std::lock_guard lock(mutex_);
    health_ = wire;
  }
  void SetModels(const std::string& wire) {
    const std::lock_guard lock(mutex_);
    models_ = wire;
  }

  Member Get() { return *fleet_.Current()->Find(id_); }
  bool Becomes(const std::function<bool(const Member&)>& condition) {
    return fathom::Becomes([&] { return condition(Get()); });
  }
  bool Becomes(WorkerState state) {
    return Becomes([=](const Member& member) { return member.state == state; });
  }

  LoopThread thread_;
  Resolver resolver_;
  Log log_{2, LogLevel::kOff};
  Fleet fleet_;
  ProbeOptions options_;
  std::mutex mutex_;
  std::string health_ = Of(200);
  std::string models_ = Of(200, R"({"data":[{"id":"m"}]})");
  std::string last_health_request_;
  std::string last_models_request_;
  std::unique_ptr<ScriptedServer> server_;
  SlowCheck slow_check_;
  AdmissionCheck* check_ = nullptr;
  std::unique_ptr<Prober> prober_;
  std::unique_ptr<Directory> directory_;
  WorkerId id_;
};

TEST_F(ProberTest, MakesAWorkerReadyOnceItIsWellAndHasSaidWhatItServes) {
  Join();
  ASSERT_TRUE(Becomes(WorkerState::kReady));
  EXPECT_THAT(Get().models, ElementsAre("m"));
  EXPECT_THAT(Get().model_cards, ElementsAre(R"({"id":"m"})"));
}

TEST_F(ProberTest, HoldsAWorkerUntilItsCheckIsDone) {
  SlowCheck& check = slow_check_;
  check_ = &check;
  Join();
  // Some health checks later it is still held.
  ASSERT_TRUE(fathom::Becomes([&] { return check.repeated > 2; }));
  EXPECT_EQ(check.begun, 1);
  EXPECT_EQ(Get().state, WorkerState::kProbing);
  thread_.Call([&] { check.done(); });
  EXPECT_EQ(Get().state, WorkerState::kReady);
  SetHealth(Of(500));
  ASSERT_TRUE(Becomes(WorkerState::kUnhealthy));
  SetHealth(Of(200));
  ASSERT_TRUE(fathom::Becomes([&] { return check.begun == 2; })) << "it may be another process";
  EXPECT_EQ(Get().state, WorkerState::kProbing);
  directory_->Leave(id_);
  EXPECT_TRUE(fathom::Becomes([&] { return check.forgotten == 1; }));
}

TEST_F(ProberTest, HoldsAWorkerNoLongerThanTheBound) {
  SlowCheck& check = slow_check_;
  check_ = &check;
  Join();
  ASSERT_TRUE(fathom::Becomes([&] { return check.begun == 1; }));
  EXPECT_TRUE(Becomes(WorkerState::kReady)) << "though its check never ends";
}

TEST_F(ProberTest, HoldsNoWorkerThatTheCheckDoesNotConcern) {
  SlowCheck& check = slow_check_;
  check.concerns = false;
  check_ = &check;
  Join();
  ASSERT_TRUE(fathom::Becomes([&] { return check.begun == 1; }));
  EXPECT_EQ(Get().state, WorkerState::kReady);
}

TEST_F(ProberTest, ReportsANewcomerThatIsIllAtOnceAndSeesItRecover) {
  health_ = Of(503);
  options_.failures = 1000;
  Join();
  ASSERT_TRUE(Becomes(WorkerState::kUnhealthy));
  EXPECT_EQ(Get().cause, "/health answered 503");
  SetHealth(Of(200));
  ASSERT_TRUE(Becomes(WorkerState::kReady));
  EXPECT_EQ(Get().cause, "");
}

TEST_F(ProberTest, ToleratesFewerFailuresThanTheLimitAndTakesItOutThen) {
  options_.failures = 3;
  Join();
  ASSERT_TRUE(Becomes(WorkerState::kReady));
  SetHealth(Of(500));
  ASSERT_TRUE(Becomes(WorkerState::kUnhealthy));
  SetHealth(Of(200));
  ASSERT_TRUE(Becomes(WorkerState::kReady));
}

TEST_F(ProberTest, KeepsTheCauseUpToDateWhileAWorkerIsIll) {
  health_ = Of(500);
  Join();
  ASSERT_TRUE(Becomes(WorkerState::kUnhealthy));
  SetHealth(Of(503));
  EXPECT_TRUE(Becomes([](const Member& m) { return m.cause == "/health answered 503"; }))
      << Get().cause;
}

TEST_F(ProberTest, SeesNewModels) {
  Join();
  ASSERT_TRUE(Becomes(WorkerState::kReady));
  SetModels(Of(200, R"({"data":[{"id":"m"},{"id":"lora"}]})"));
  EXPECT_TRUE(Becomes([](const Member& m) { return m.models.size() == 2; }));
  SetModels(Of(404));
  EXPECT_TRUE(Becomes([](const Member& m) { return m.any_model; }));
}

TEST_F(ProberTest, SaysWhatToDoWhenTheWorkerWantsAKey) {
  models_ = Of(401);
  Join();
  ASSERT_TRUE(Becomes(WorkerState::kUnhealthy));
  EXPECT_THAT(Get().cause, HasSubstr("api_key_env"));
}

TEST_F(ProberTest, SendsTheKeyWithTheQuestionForModelsOnly) {
  WorkerRequest request;
  request.api_key_env = "KEY";
  request.from = WorkerRequest::From::kOperator;
  Join(request);
  ASSERT_TRUE(Becomes(WorkerState::kReady));
  const std::lock_guard lock(mutex_);
  EXPECT_THAT(last_models_request_, HasSubstr("\r\nauthorization: Bearer secret\r\n"));
  EXPECT_THAT(last_health_request_, Not(HasSubstr("secret")));
}

TEST_F(ProberTest, TakesGarbageAndCutAnswersForIllness) {
  Join();
  ASSERT_TRUE(Becomes(WorkerState::kReady));
  SetHealth("garbage\r\n\r\n");
  ASSERT_TRUE(Becomes(WorkerState::kUnhealthy));
  SetHealth(Of(200));
  ASSERT_TRUE(Becomes(WorkerState::kReady));
  SetModels("HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{");
  ASSERT_TRUE(Becomes(WorkerState::kUnhealthy));
  SetModels(Of(500));
  EXPECT_TRUE(Becomes([](const Member& m) { return m.cause == "/v1/models answered 500"; }));
}

TEST_F(ProberTest, NotesSinceWhenAListenerIsGoneAndThatItIsBack) {
  Join();
  ASSERT_TRUE(Becomes(WorkerState::kReady));
  EXPECT_EQ(Get().worker->gone_since, 0);
  server_->Stop();
  EXPECT_TRUE(Becomes([](const Member& m) { return m.worker->gone_since != 0; }));
  ASSERT_TRUE(Becomes(WorkerState::kUnhealthy));
  EXPECT_THAT(Get().cause, HasSubstr("connection refused"));
}

TEST_F(ProberTest, AsksNoMoreOnceAWorkerIsForgotten) {
  Join();
  ASSERT_TRUE(Becomes(WorkerState::kReady));
  ASSERT_TRUE(directory_->Leave(id_));
  std::this_thread::sleep_for(milliseconds(40));
  {
    const std::lock_guard lock(mutex_);
    last_health_request_.clear();
  }
  std::this_thread::sleep_for(milliseconds(40));
  const std::lock_guard lock(mutex_);
  EXPECT_EQ(last_health_request_, "");
  EXPECT_EQ(fleet_.Current()->Find(id_), nullptr);
}

class SlicedProberTest : public ProberTest {
 protected:
  SlicedProberTest() : ProberTest(*ModelSlice::Of({"llama*"})) {
    check_ = &slow_check_;
    slow_check_.concerns = false;
  }
};

TEST_F(SlicedProberTest, ExaminesAWorkerThatServesAModelOfTheSlice) {
  models_ = Of(200, R"({"data":[{"id":"llama"},{"id":"qwen"}]})");
  Join();
  ASSERT_TRUE(Becomes(WorkerState::kReady));
  EXPECT_THAT(Get().models, ElementsAre("llama"));
  EXPECT_TRUE(fathom::Becomes([&] { return slow_check_.begun == 1; }));
}

TEST_F(SlicedProberTest, DoesNotExamineAWorkerOfOtherModelsUntilItServesOne) {
  Join();
  ASSERT_TRUE(Becomes(WorkerState::kOutside));
  EXPECT_EQ(Get().cause, "serves none of --models: it serves m");
  EXPECT_EQ(slow_check_.begun, 0);
  SetModels(Of(200, R"({"data":[{"id":"llama"}]})"));
  ASSERT_TRUE(Becomes(WorkerState::kReady));
  EXPECT_TRUE(fathom::Becomes([&] { return slow_check_.begun == 1; }));
  SetModels(Of(200, R"({"data":[{"id":"m"}]})"));
  ASSERT_TRUE(Becomes(WorkerState::kOutside));
  EXPECT_TRUE(fathom::Becomes([&] { return slow_check_.forgotten == 2; }));
  SetModels(Of(200, R"({"data":[{"id":"llama"}]})"));
  ASSERT_TRUE(Becomes(WorkerState::kReady));
  EXPECT_TRUE(fathom::Becomes([&] { return slow_check_.begun == 2; })) << "it is examined again";
}

TEST(ReadModels, LeavesOutNamesThatNoRequestCanHave) {
  const std::string longest(kLongestModel, 'm');
  const std::string body = R"({"data":[{"id":")" + longest + R"("},{"id":")" + longest + R"(m"}]})";
  EXPECT_EQ(ReadModels(200, body).models, std::vector<std::string>{longest});
}

}  // namespace
}  // namespace fathom
