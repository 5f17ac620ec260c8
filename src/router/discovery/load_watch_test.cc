#include "router/discovery/load_watch.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "testing/becomes.h"
#include "testing/loop_thread.h"
#include "testing/raw_socket.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;

// Longer than the interval, but short, because a forgotten watch ends only when its sleep does.
constexpr Duration kLong = milliseconds(1500);

constexpr std::string_view kVllmLoadPage =
    "vllm:num_requests_running{engine=\"0\"} 3\n"
    "vllm:cache_config_info{block_size=\"16\",kv_cache_size_tokens=\"4096\",engine=\"0\"} 1\n";
constexpr std::string_view kSglangInfo =
    R"({"page_size":64,"max_total_num_tokens":8192,"dp_size":1,"chunked_prefill_size":2048})";
constexpr std::string_view kSglangLoads =
    R"({"loads":[{"dp_rank":0,"num_running_reqs":5,"num_waiting_reqs":1,"token_usage":0.5,)"
    R"("max_running_requests":128}]})";
constexpr std::string_view kTrtllmLoadPage =
    R"([{"iter":1,"numActiveRequests":2,"numQueuedRequests":0,"maxNumActiveRequests":64,)"
    R"("kvCacheStats":{"maxNumBlocks":10,"usedNumBlocks":5,"tokensPerBlock":32}}])";

// A worker whose pages the test changes while it is being watched.
class LoadWatchTest : public testing::Test {
 protected:
  LoadWatchTest() {
    options_.interval = milliseconds(5);
    options_.timeout = std::chrono::seconds(20);
    options_.draining_interval = milliseconds(5);
    options_.quiet_interval = milliseconds(5);
  }
  ~LoadWatchTest() override {
    for (const auto& worker : workers_) watch_->Forget(worker->id());
    // A watch ends when its sleep or its question does, and then releases its worker's endpoint.
    EXPECT_TRUE(Becomes([&] {
      return std::ranges::all_of(watched_, [](const auto& address) { return address.expired(); });
    }));
    server_.reset();
    thread_.Call([] {});
    thread_.Stop();
    ::close(log_pipe_[0]);
    ::close(log_pipe_[1]);
  }

  void Join(bool ready = true, std::string api_key = "") {
    server_ = std::make_unique<ScriptedServer>([this](RawSocket& socket) { Answer(socket); });
    watch_ = std::make_unique<LoadWatch>(thread_.loop(), resolver_, fleet_, options_, log_);
    worker_ = AddWorker("", ready, std::move(api_key));
  }

  std::shared_ptr<Worker> AddWorker(const std::string& base_path, bool ready = true,
                                    std::string api_key = "") {
    WorkerSpec spec;
    spec.url = server_->url() + base_path;
    spec.api_key = std::move(api_key);
    auto url = *Url::Parse(spec.url);
    workers_.push_back(*fleet_.Add(std::move(spec)));
    if (ready) fleet_.SetHealthy(workers_.back()->id());
    auto address = std::make_shared<const Endpoint>(Endpoint{std::move(url), nullptr});
    watched_.push_back(address);
    watch_->Watch(workers_.back(), std::move(address));
    return workers_.back();
  }

  // Without the worker's base path and the query.
  static std::string PathOf(const std::string& head) {
    std::string path = head.substr(0, head.find(" HTTP/"));
    path = path.substr(path.find('/'));
    if (path.size() > 2 && path[2] == '/') path = path.substr(2);
    return path.substr(0, path.find('?'));
  }

  void Answer(RawSocket& socket) {
    const std::string head = socket.ReadUntil("\r\n\r\n");
    const std::string path = PathOf(head);
    most_at_once_ = std::max(most_at_once_.load(), ++at_once_);
    std::this_thread::sleep_for(answer_time_);
    --at_once_;  // before the answer, after which the next question may come
    const std::lock_guard lock(mutex_);
    last_head_ = head;
    ++asked_[path];
    if (silent_) return;
    const auto page = pages_.find(path);
    const int status = page == pages_.end() ? missing_ : 200;
    const std::string body = page == pages_.end() ? "{}" : page->second;
    socket.Send(
        fmt::format("HTTP/1.1 {} X\r\ncontent-length: {}\r\n\r\n{}", status, body.size(), body));
  }

  void Set(const std::string& path, std::string_view body) {
    const std::lock_guard lock(mutex_);
    pages_[path] = body;
  }
  void Clear() {
    const std::lock_guard lock(mutex_);
    pages_.clear();
  }
  int Asked(const std::string& path) {
    const std::lock_guard lock(mutex_);
    return asked_[path];
  }

  std::shared_ptr<const EngineReport> Report() { return worker_->report.Current(); }
  bool Reports(const std::function<bool(const EngineReport&)>& condition) {
    return Becomes([&] {
      const auto report = Report();
      return report != nullptr && condition(*report);
    });
  }
  bool IsAskedAgain(const std::string& path, int times = 2) {
    const int before = Asked(path);
    return Becomes([&] { return Asked(path) >= before + times; });
  }
  // Whether a worker has been looked at since. A second, ready worker shows it, because workers are
  // asked one at a time (at_once): while the second is asked, the first one's last question has
  // ended, and the first sleeps no longer than the second. One of the five questions may be that
  // last one.
  bool IsLookedAt() { return IsAskedAgain("/metrics", 5); }

  static int64_t TimesSince(TimePoint begun, Duration interval) {
    return (std::chrono::steady_clock::now() - begun) / interval;
  }

  // Since the last call.
  std::string Logged() {
    std::array<char, 65536> room;
    CHECK(::write(log_pipe_[1], "\n", 1) == 1);
    const ssize_t n = ::read(log_pipe_[0], room.data(), room.size());
    CHECK(n > 0);
    return std::string(room.data(), static_cast<size_t>(n));
  }
  static std::array<int, 2> OpenPipe() {
    std::array<int, 2> ends{};
    CHECK(::pipe(ends.data()) == 0);
    return ends;
  }

  LoadWatchOptions options_;
  std::mutex mutex_;
  std::map<std::string, std::string> pages_;
  std::map<std::string, int> asked_;
  std::string last_head_;
  int missing_ = 404;
  bool silent_ = false;
  std::atomic<int> at_once_ = 0;
  std::atomic<int> most_at_once_ = 0;
  milliseconds answer_time_{0};
  Resolver resolver_;
  const std::array<int, 2> log_pipe_ = OpenPipe();
  Log log_{log_pipe_[1]};
  Fleet fleet_{BreakerOptions{}};
  LoopThread thread_;
  std::unique_ptr<ScriptedServer> server_;
  std::unique_ptr<LoadWatch> watch_;
  std::vector<std::shared_ptr<Worker>> workers_;
  std::vector<std::weak_ptr<const Endpoint>> watched_;
  std::shared_ptr<Worker> worker_;  // the first
};

TEST_F(LoadWatchTest, ReportsVllmAndKeepsTheLoadUpToDate) {
  Set("/metrics", kVllmLoadPage);
  Join();
  ASSERT_TRUE(Reports([](const EngineReport& r) { return r.engine == EngineKind::kVllm; }));
  EXPECT_EQ(Report()->block_size, 16u);
  EXPECT_EQ(worker_->report.kv_tokens(), 4096u);
  EXPECT_EQ(Report()->loads.at(0).running, 3u);
  Set("/metrics", "vllm:num_requests_running{engine=\"0\"} 9\n");
  ASSERT_TRUE(Reports([](const EngineReport& r) { return r.loads.at(0).running == 9; }));
  EXPECT_EQ(Report()->block_size, 16u) << "what was said once stays known";
  EXPECT_EQ(Asked("/server_info"), 1) << "a page that it does not have is asked for once";
}

TEST_F(LoadWatchTest, AddsTheLimitsOfAVllmThatTellsThem) {
  Set("/metrics", kVllmLoadPage);
  Set("/server_info",
      R"({"vllm_config":{"scheduler_config":{"max_num_seqs":99,"max_num_batched_tokens":512}}})");
  Join();
  ASSERT_TRUE(Reports([](const EngineReport& r) { return r.kv_tokens == 4096; }));
  EXPECT_EQ(worker_->report.max_running(), 99u);
  EXPECT_EQ(worker_->report.batch_tokens(), 512u);
}

TEST_F(LoadWatchTest, ReportsSglangFromItsTwoPages) {
  Set("/server_info", kSglangInfo);
  Set("/v1/loads", kSglangLoads);
  Join();
  ASSERT_TRUE(Reports([](const EngineReport& r) { return !r.loads.empty(); }));
  EXPECT_EQ(Report()->engine, EngineKind::kSglang);
  EXPECT_EQ(Report()->block_size, 64u);
  EXPECT_EQ(Report()->kv_tokens, 8192u);
  EXPECT_EQ(Report()->max_running, 128u);
  EXPECT_EQ(Report()->batch_tokens, 2048u);
  EXPECT_THAT(Report()->loads, ElementsAre(RankLoadReport{0, 5, 1, 0.5}));
  ASSERT_TRUE(IsAskedAgain("/v1/loads"));
  EXPECT_EQ(Asked("/server_info"), 1) << "later questions are about load only";
  EXPECT_EQ(Asked("/metrics"), 0);
}

TEST_F(LoadWatchTest, ReadsTheMetricsOfAnOldSglangThatHasNoLoadsPage) {
  Set("/get_server_info", kSglangInfo);
  Set("/metrics", "sglang:num_running_reqs{tp_rank=\"0\"} 4\n");
  Join();
  ASSERT_TRUE(Reports([](const EngineReport& r) { return !r.loads.empty(); }));
  EXPECT_EQ(Report()->block_size, 64u);
  EXPECT_EQ(Report()->loads.at(0).running, 4u);
  ASSERT_TRUE(IsAskedAgain("/metrics"));
  EXPECT_EQ(Asked("/v1/loads"), 1);
}

TEST_F(LoadWatchTest, ReportsTheCapacityOfAnEngineThatDoesNotTellItsLoad) {
  Set("/server_info", kSglangInfo);
  Join();
  ASSERT_TRUE(Reports([](const EngineReport& r) { return r.kv_tokens == 8192; }));
  EXPECT_TRUE(Report()->loads.empty());
}

TEST_F(LoadWatchTest, RemembersWhatTensorRtSaidOnceItHasNothingNewToSay) {
  Set("/server_info", R"({"disaggregated_params":null})");
  Set("/metrics", kTrtllmLoadPage);
  Join();
  ASSERT_TRUE(Reports([](const EngineReport& r) { return r.engine == EngineKind::kTrtllm; }));
  EXPECT_EQ(Report()->loads.at(0).running, 2u);
  Set("/metrics", "[]");
  ASSERT_TRUE(Reports([](const EngineReport& r) { return r.loads.empty(); }));
  EXPECT_EQ(Report()->block_size, 32u);
  EXPECT_EQ(Report()->kv_tokens, 320u);
  EXPECT_EQ(Report()->max_running, 64u);
}

TEST_F(LoadWatchTest, AsksTensorRtMoreRarelyBecauseAskingTakesAway) {
  options_.draining_interval = kLong;
  Set("/metrics", kTrtllmLoadPage);
  const TimePoint begun = std::chrono::steady_clock::now();
  Join();
  ASSERT_TRUE(Reports([](const EngineReport&) { return true; }));
  std::this_thread::sleep_for(milliseconds(60));
  EXPECT_LE(Asked("/metrics"), 1 + TimesSince(begun, kLong));
}

TEST_F(LoadWatchTest, FindsTheBlocksOfATensorRtThatTellsThemOnAnotherPage) {
  Set("/metrics", "[]");
  Set("/prometheus/metrics", "trtllm_num_requests_running 0\n");
  Join();
  ASSERT_TRUE(Reports([](const EngineReport& r) { return r.engine == EngineKind::kTrtllm; }));
  ASSERT_TRUE(IsAskedAgain("/prometheus/metrics")) << "it has not run yet";
  EXPECT_EQ(Report()->block_size, 0u);
  Set("/prometheus/metrics",
      "trtllm_kv_cache_tokens_per_block 64\ntrtllm_kv_cache_max_blocks 10\n");
  ASSERT_TRUE(Reports([](const EngineReport& r) { return r.block_size == 64; }));
  EXPECT_EQ(Report()->num_blocks, 10u);
  const int asked = Asked("/prometheus/metrics");
  ASSERT_TRUE(IsAskedAgain("/metrics"));
  EXPECT_EQ(Asked("/prometheus/metrics"), asked) << "it has said so";
  EXPECT_EQ(Report()->block_size, 64u);
  EXPECT_EQ(Asked("/health_generate"), 0) << "nobody makes it work for this";
}

TEST_F(LoadWatchTest, DoesNotAskTensorRtAgainForAPageThatItDoesNotHave) {
  Set("/metrics", "[]");
  Join();
  ASSERT_TRUE(IsAskedAgain("/metrics", 3));
  EXPECT_EQ(Asked("/prometheus/metrics"), 1);
}

TEST_F(LoadWatchTest, AsksASuspectForItsFactsAtOnce) {
  Set("/server_info", kSglangInfo);
  Set("/v1/loads", kSglangLoads);
  Join();
  ASSERT_TRUE(Reports([](const EngineReport& r) { return r.block_size == 64; }));
  Set("/server_info", R"({"page_size":32,"max_total_num_tokens":8192})");
  ASSERT_TRUE(IsAskedAgain("/v1/loads"));
  EXPECT_EQ(Asked("/server_info"), 1);
  worker_->report.Suspect();
  EXPECT_TRUE(Reports([](const EngineReport& r) { return r.block_size == 32; }));
  EXPECT_EQ(Asked("/server_info"), 2);
}

TEST_F(LoadWatchTest, AsksASuspectForPagesThatItDidNotHave) {
  Set("/metrics", "[]");
  Join();
  ASSERT_TRUE(IsAskedAgain("/metrics", 3));
  Set("/prometheus/metrics", "trtllm_kv_cache_tokens_per_block 64\n");
  worker_->report.Suspect();
  EXPECT_TRUE(Reports([](const EngineReport& r) { return r.block_size == 64; }));
  EXPECT_EQ(Asked("/server_info"), 2);
}

TEST_F(LoadWatchTest, KeepsWhatASuspectDoesNotSayAgain) {
  Set("/metrics", kTrtllmLoadPage);
  Join();
  ASSERT_TRUE(Reports([](const EngineReport& r) { return r.block_size == 32; }));
  Set("/metrics", "[]");
  worker_->report.Suspect();
  ASSERT_TRUE(IsAskedAgain("/prometheus/metrics", 1));
  ASSERT_TRUE(IsAskedAgain("/metrics"));
  EXPECT_EQ(Report()->block_size, 32u);
}

TEST_F(LoadWatchTest, KnowsAVllmWithoutStatisticsByItsEventSources) {
  Set("/metrics", "process_start_time_seconds 1.79e+09\n");
  Set("/kv_event_sources", R"({"0":{"endpoint":"tcp://*:5557"},"1":{}})");
  Join();
  ASSERT_TRUE(Reports([](const EngineReport& r) { return r.engine == EngineKind::kVllm; }));
  EXPECT_EQ(Report()->ranks, 2u);
  EXPECT_EQ(Report()->block_size, 0u);
}

// The prober asks first, and TensorRT-LLM's statistics are then consumed.
TEST_F(LoadWatchTest, KeepsWhatAWorkerSaidToOthersWhenItCame) {
  Set("/metrics", "[]");
  Join(false);
  worker_->report.Publish(
      {.engine = EngineKind::kTrtllm, .block_size = 32, .num_blocks = 10, .kv_tokens = 320},
      TimePoint(Duration(1)));
  fleet_.SetHealthy(worker_->id());
  ASSERT_TRUE(IsAskedAgain("/metrics"));
  ASSERT_TRUE(Becomes([&] { return worker_->report.published() > TimePoint(Duration(1)); }));
  EXPECT_EQ(Report()->block_size, 32u);
  EXPECT_EQ(Report()->kv_tokens, 320u);
}

TEST_F(LoadWatchTest, LeavesAWorkerAloneThatCannotSay) {
  options_.quiet_interval = kLong;
  const TimePoint begun = std::chrono::steady_clock::now();
  Join();
  ASSERT_TRUE(Becomes([&] { return Asked("/metrics") >= 1; }));
  std::this_thread::sleep_for(milliseconds(60));
  EXPECT_LE(Asked("/metrics"), 1 + TimesSince(begun, kLong));
  EXPECT_EQ(Report(), nullptr);
}

TEST_F(LoadWatchTest, AsksAgainOneThatCouldNotSayAtFirst) {
  Join();
  ASSERT_TRUE(IsAskedAgain("/metrics"));
  EXPECT_EQ(Report(), nullptr);
  Set("/metrics", kVllmLoadPage);
  EXPECT_TRUE(Reports([](const EngineReport& r) { return r.engine == EngineKind::kVllm; }));
}

TEST_F(LoadWatchTest, ChangesNothingButTheAgeWhenAnAnswerFails) {
  options_.quiet_interval = kLong;
  Set("/metrics", kVllmLoadPage);
  Join();
  ASSERT_TRUE(Reports([](const EngineReport&) { return true; }));
  {
    const std::lock_guard lock(mutex_);
    missing_ = 500;
    pages_.clear();
  }
  ASSERT_TRUE(IsAskedAgain("/metrics")) << "soon, because an error may pass";
  const auto report = Report();
  const auto published = worker_->report.published();
  {
    const std::lock_guard lock(mutex_);
    silent_ = true;
  }
  ASSERT_TRUE(IsAskedAgain("/metrics"));
  EXPECT_EQ(Report(), report);
  EXPECT_EQ(worker_->report.published(), published);
  EXPECT_EQ(report->loads.at(0).running, 3u);
}

TEST_F(LoadWatchTest, AsksOnlyWorkersThatAreReady) {
  options_.at_once = 1;
  Set("/metrics", kVllmLoadPage);
  Join(false);
  AddWorker("/1");
  ASSERT_TRUE(IsLookedAt());
  EXPECT_EQ(Report(), nullptr);
  fleet_.SetHealthy(worker_->id());
  EXPECT_TRUE(Reports([](const EngineReport&) { return true; }));
}

TEST_F(LoadWatchTest, StartsAnewWithAWorkerThatComesBack) {
  options_.at_once = 1;
  Set("/metrics", kVllmLoadPage);
  Join();
  AddWorker("/1");
  ASSERT_TRUE(Reports([](const EngineReport& r) { return r.block_size == 16; }));
  fleet_.SetUnhealthy(worker_->id(), "restarting");
  ASSERT_TRUE(IsLookedAt());
  Clear();
  Set("/server_info", kSglangInfo);
  Set("/v1/loads", kSglangLoads);
  fleet_.SetHealthy(worker_->id());
  ASSERT_TRUE(Reports([](const EngineReport& r) { return r.engine == EngineKind::kSglang; }));
  EXPECT_EQ(Report()->block_size, 64u);
}

TEST_F(LoadWatchTest, StartsAnewWithAWorkerThatNobodySawGoAway) {
  Set("/metrics", kVllmLoadPage);
  Set("/server_info", R"({"vllm_config":{"scheduler_config":{"max_num_seqs":99}}})");
  Join();
  ASSERT_TRUE(Reports([](const EngineReport& r) { return r.max_running == 99; }));
  Clear();
  Set("/metrics", "vllm:num_requests_running{engine=\"0\"} 1\n");
  ASSERT_TRUE(Reports([](const EngineReport& r) { return r.loads.at(0).running == 1; }));
  EXPECT_EQ(Report()->max_running, 99u) << "it has been the same process so far";
  fleet_.SetUnhealthy(worker_->id(), "restarting");
  fleet_.SetHealthy(worker_->id());
  ASSERT_TRUE(Reports([](const EngineReport& r) { return r.max_running == 0; }));
  EXPECT_EQ(Report()->kv_tokens, 0u);
  EXPECT_EQ(worker_->report.kv_tokens(), 0u);
}

// Otherwise the block size of the process before would be reported for this one, and admit it.
TEST_F(LoadWatchTest, StartsAnewWithAWorkerThatComesBackAndIsExcluded) {
  Set("/server_info", kSglangInfo);
  Set("/v1/loads", kSglangLoads);
  Join();
  ASSERT_TRUE(Reports([](const EngineReport& r) { return r.block_size == 64; }));
  Set("/server_info", R"({"page_size":16,"max_total_num_tokens":8192})");
  fleet_.SetUnhealthy(worker_->id(), "restarting");
  fleet_.SetMembership(worker_->id(), Membership::kRefused, "block_size_conflict");
  fleet_.SetHealthy(worker_->id());
  EXPECT_TRUE(Reports([](const EngineReport& r) { return r.block_size == 16; }));
  EXPECT_EQ(Asked("/server_info"), 2);
}

TEST_F(LoadWatchTest, ForgetsTheReportOfAProcessWhoseSuccessorSaysNothing) {
  Set("/metrics", kVllmLoadPage);
  Join();
  ASSERT_TRUE(Reports([](const EngineReport& r) { return r.block_size == 16; }));
  Clear();
  ASSERT_TRUE(IsAskedAgain("/metrics"));
  EXPECT_NE(Report(), nullptr) << "the same process, which may have its reasons";
  fleet_.SetUnhealthy(worker_->id(), "restarting");
  fleet_.SetHealthy(worker_->id());
  EXPECT_TRUE(Becomes([&] { return Report() == nullptr; }));
}

// The trust in the worker's ranks follows it, and is logged (TrustKeeper).
TEST_F(LoadWatchTest, PublishesWhetherPrefixCachingIsOnAndDoesNotLogIt) {
  const auto metrics = [](std::string_view on) {
    return fmt::format(
        "vllm:num_requests_running{{engine=\"0\"}} 1\n"
        "vllm:cache_config_info{{block_size=\"16\",enable_prefix_caching=\"{}\",engine=\"0\"}} 1\n",
        on);
  };
  Set("/metrics", metrics("False"));
  Join();
  ASSERT_TRUE(Reports([](const EngineReport& r) { return r.prefix_caching == false; }));
  Set("/metrics", metrics("True"));
  ASSERT_TRUE(Reports([](const EngineReport& r) { return r.prefix_caching == true; }));
  EXPECT_THAT(Logged(), Not(HasSubstr("WARN")));
}

TEST_F(LoadWatchTest, NoticesThatAnotherEngineAnswersNow) {
  Set("/metrics", kVllmLoadPage);
  Join();
  ASSERT_TRUE(Reports([](const EngineReport& r) { return r.engine == EngineKind::kVllm; }));
  Set("/metrics", "[]");
  ASSERT_TRUE(Reports([](const EngineReport& r) { return r.engine == EngineKind::kTrtllm; }));
  EXPECT_EQ(Report()->block_size, 0u) << "what the other one said is forgotten";
}

TEST_F(LoadWatchTest, TakesTheContextLengthFromTheModelCards) {
  Set("/metrics", kVllmLoadPage);
  Join(false);
  Fleet::ModelReport models;
  models.models = {"a", "b"};
  models.cards = {R"({"id":"a","max_model_len":4096})", R"({"id":"b","parent":"a"})"};
  fleet_.SetModels(worker_->id(), models);
  fleet_.SetHealthy(worker_->id());
  EXPECT_TRUE(Reports([](const EngineReport& r) { return r.context_length == 4096; }));
}

TEST_F(LoadWatchTest, SendsTheKeyOfTheWorker) {
  Set("/metrics", kVllmLoadPage);
  Join(true, "secret");
  ASSERT_TRUE(Reports([](const EngineReport&) { return true; }));
  const std::lock_guard lock(mutex_);
  EXPECT_THAT(last_head_, HasSubstr("\r\nauthorization: Bearer secret\r\n"));
}

TEST_F(LoadWatchTest, SendsNoKeyIfTheWorkerHasNone) {
  Set("/metrics", kVllmLoadPage);
  Join();
  ASSERT_TRUE(Reports([](const EngineReport&) { return true; }));
  const std::lock_guard lock(mutex_);
  EXPECT_THAT(last_head_, Not(HasSubstr("authorization")));
}

TEST_F(LoadWatchTest, AsksOnlySoManyWorkersAtOnceButAllOfThemInTheEnd) {
  options_.at_once = 2;
  answer_time_ = milliseconds(3);
  Set("/metrics", kVllmLoadPage);
  Join();
  for (int i = 1; i < 8; ++i) AddWorker(fmt::format("/{}", i));
  for (const auto& worker : workers_) {
    EXPECT_TRUE(Becomes([&] { return worker->report.Current() != nullptr; }));
  }
  EXPECT_LE(most_at_once_, 2);
}

TEST_F(LoadWatchTest, AsksNoMoreOnceAWorkerIsForgotten) {
  Set("/metrics", kVllmLoadPage);
  Join();
  ASSERT_TRUE(Reports([](const EngineReport&) { return true; }));
  watch_->Forget(worker_->id());
  ASSERT_TRUE(Becomes([&] { return watched_[0].expired(); })) << "its last question has ended";
  const int asked = Asked("/metrics");
  std::this_thread::sleep_for(milliseconds(60));
  EXPECT_EQ(Asked("/metrics"), asked);
}

}  // namespace
}  // namespace fathom
