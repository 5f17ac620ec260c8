#include "router/discovery/capability.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "testing/loop_thread.h"
#include "testing/raw_socket.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

constexpr Duration kPatience = std::chrono::seconds(20);
constexpr std::string_view kVllm =
    "vllm:num_requests_running{engine=\"0\"} 3\n"
    "vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"256\",engine=\"0\"} 1\n";
constexpr std::string_view kSglang =
    R"({"page_size":64,"max_total_num_tokens":8192,"dp_size":2,"kv_events":{"block_size":64}})";
constexpr std::string_view kTrtllm =
    R"([{"iter":1,"numActiveRequests":0,"kvCacheStats":{"maxNumBlocks":10,"tokensPerBlock":32}}])";
constexpr std::string_view kTrtllmPrometheus =
    "trtllm_kv_cache_tokens_per_block 64\ntrtllm_kv_cache_max_blocks 10\n";

// A worker with the pages that the test gives it.
class CapabilityTest : public testing::Test {
 protected:
  EngineReport Ask(Duration patience = kPatience) {
    server_ = std::make_unique<ScriptedServer>([this](RawSocket& socket) { Answer(socket); });
    const EngineReport found = Ask(server_->url(), patience);
    server_.reset();  // no more requests are served, so the test may change the pages
    return found;
  }

  EngineReport Ask(const std::string& url, Duration patience) {
    WorkerSpec spec;
    spec.url = url;
    spec.api_key = "secret";
    const Worker worker(std::move(spec), BreakerOptions{});
    const Endpoint endpoint{*Url::Parse(url), nullptr};
    Loop loop;
    Resolver resolver;
    const TimePoint deadline = loop.now() + patience;
    return RunToEnd(loop, [&] {
      return AskCapability(loop, resolver, worker, std::make_shared<const Endpoint>(endpoint),
                           deadline);
    });
  }

  void Answer(RawSocket& socket) {
    const std::string head = socket.ReadUntil("\r\n\r\n");
    std::string path = head.substr(0, head.find(" HTTP/"));
    path = path.substr(path.find('/'));
    path = path.substr(0, path.find('?'));
    const std::lock_guard lock(mutex_);
    asked_.push_back(path);
    last_head_ = head;
    if (on_asked_) on_asked_(path);
    if (const auto raw = raw_.find(path); raw != raw_.end()) {
      socket.Send(raw->second);
      return;
    }
    const auto page = pages_.find(path);
    const int status = page == pages_.end() ? 404 : 200;
    const std::string body = page == pages_.end() ? "{}" : page->second;
    socket.Send(
        fmt::format("HTTP/1.1 {} X\r\ncontent-length: {}\r\n\r\n{}", status, body.size(), body));
  }

  std::mutex mutex_;  // of all below
  std::map<std::string, std::string> pages_;
  std::map<std::string, std::string> raw_;  // whole answers
  std::function<void(const std::string& path)> on_asked_;
  std::vector<std::string> asked_;
  std::string last_head_;
  std::unique_ptr<ScriptedServer> server_;
};

TEST_F(CapabilityTest, ReadsWhatVllmSaysOfItsCache) {
  pages_["/metrics"] = kVllm;
  const EngineReport found = Ask();
  EXPECT_EQ(found.engine, EngineKind::kVllm);
  EXPECT_EQ(found.block_size, 16u);
  EXPECT_EQ(found.num_blocks, 256u);
  EXPECT_THAT(asked_, Not(Contains("/kv_event_sources")));
  EXPECT_THAT(last_head_, HasSubstr("\r\nauthorization: Bearer secret\r\n"));
}

TEST_F(CapabilityTest, MultipliesTheBlocksOfAVllmThatTellsOfContextParallelism) {
  pages_["/server_info"] =
      R"({"vllm_config":{"parallel_config":{"decode_context_parallel_size":2}}})";
  pages_["/metrics"] = kVllm;
  EXPECT_EQ(Ask().event_block_size(), 32u);
}

TEST_F(CapabilityTest, ReadsWhatSglangSaysOfItsPages) {
  pages_["/server_info"] = kSglang;
  const EngineReport found = Ask();
  EXPECT_EQ(found.engine, EngineKind::kSglang);
  EXPECT_EQ(found.event_block_size(), 64u);
  EXPECT_EQ(found.ranks, 2u);
  EXPECT_THAT(asked_, Not(Contains("/get_server_info")));
}

TEST_F(CapabilityTest, AsksAnOldSglangUnderItsOldName) {
  pages_["/get_server_info"] = kSglang;
  EXPECT_EQ(Ask().event_block_size(), 64u);
  EXPECT_THAT(asked_, Contains("/get_server_info"));
}

TEST_F(CapabilityTest, LooksInTheMetricsForThePageThatSglangLeavesOut) {
  pages_["/server_info"] = R"({"page_size":null,"max_total_num_tokens":8192})";
  pages_["/metrics"] = "sglang:page_size 16\n";
  const EngineReport found = Ask();
  EXPECT_EQ(found.block_size, 16u);
  EXPECT_EQ(found.kv_tokens, 8192u);
}

TEST_F(CapabilityTest, KnowsAVllmWithoutStatisticsByItsEventSources) {
  pages_["/metrics"] = "process_start_time_seconds 1.79e+09\n";
  pages_["/kv_event_sources"] = R"({"0":{"endpoint":"tcp://*:5557"}})";
  const EngineReport found = Ask();
  EXPECT_EQ(found.engine, EngineKind::kVllm);
  EXPECT_EQ(found.block_size, 0u);
}

TEST_F(CapabilityTest, BelievesTensorRtThatHasRun) {
  pages_["/server_info"] = R"({"disaggregated_params":null})";
  pages_["/metrics"] = kTrtllm;
  const EngineReport found = Ask();
  EXPECT_EQ(found.engine, EngineKind::kTrtllm);
  EXPECT_EQ(found.block_size, 32u);
  EXPECT_EQ(found.num_blocks, 10u);
  EXPECT_THAT(asked_, Not(Contains("/health_generate")));
}

TEST_F(CapabilityTest, MakesNobodyWorkWhoTellsOnAnotherPage) {
  pages_["/server_info"] = R"({"disaggregated_params":null})";
  pages_["/metrics"] = "[]";
  pages_["/prometheus/metrics"] = kTrtllmPrometheus;
  EXPECT_EQ(Ask().block_size, 64u);
  EXPECT_THAT(asked_, UnorderedElementsAre("/server_info", "/metrics", "/prometheus/metrics"));
}

TEST_F(CapabilityTest, MakesTensorRtRunOnceIfItKnowsItsBlocksOnlyThen) {
  pages_["/server_info"] = R"({"disaggregated_params":null})";
  pages_["/metrics"] = "[]";
  pages_["/health_generate"] = "";
  on_asked_ = [this](const std::string& path) {
    if (path == "/health_generate") pages_["/metrics"] = kTrtllm;
  };
  EXPECT_EQ(Ask().block_size, 32u);
  EXPECT_EQ(std::ranges::count(asked_, "/health_generate"), 1);
  EXPECT_EQ(std::ranges::count(asked_, "/metrics"), 2);
}

TEST_F(CapabilityTest, LooksAtBothPagesAfterTensorRtHasRun) {
  pages_["/metrics"] = "[]";
  pages_["/prometheus/metrics"] = "trtllm_num_requests_running 0\n";
  on_asked_ = [this](const std::string& path) {
    if (path == "/health_generate") pages_["/prometheus/metrics"] = kTrtllmPrometheus;
  };
  EXPECT_EQ(Ask().block_size, 64u);
}

TEST_F(CapabilityTest, GivesUpOnATensorRtThatNeverSays) {
  pages_["/metrics"] = "[]";
  const EngineReport found = Ask();
  EXPECT_EQ(found, (EngineReport{.engine = EngineKind::kTrtllm}));
  EXPECT_EQ(std::ranges::count(asked_, "/health_generate"), 1);
}

TEST_F(CapabilityTest, KnowsNothingOfAWorkerThatIsNoEngineWeKnow) {
  const EngineReport found = Ask();
  EXPECT_EQ(found, EngineReport());
  EXPECT_EQ(asked_.back(), "/kv_event_sources");
}

TEST_F(CapabilityTest, KnowsNothingWhereNobodyListens) {
  std::string url;
  {
    const ScriptedServer gone([](RawSocket&) {});
    url = gone.url();
  }
  const EngineReport found = Ask(url, kPatience);
  EXPECT_EQ(found, EngineReport());
}

TEST_F(CapabilityTest, KeepsWhatItLearnedWhenALaterPageFails) {
  pages_["/server_info"] = R"({"vllm_config":{"scheduler_config":{"max_num_seqs":99}}})";
  raw_["/metrics"] = "HTTP/1.1 500 X\r\ncontent-length: 0\r\n\r\n";
  const EngineReport found = Ask();
  EXPECT_EQ(found.engine, EngineKind::kVllm);
  EXPECT_EQ(found.max_running, 99u);
}

TEST_F(CapabilityTest, AsksForTheOtherPagesWhenOneBreaksOff) {
  raw_["/server_info"] = "HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\n{";
  pages_["/metrics"] = kVllm;
  EXPECT_EQ(Ask().block_size, 16u);
}

TEST_F(CapabilityTest, SurvivesGarbageOnEveryPage) {
  for (const std::string& garbage :
       {std::string("\xff\x00\x01not http\r\n\r\n", 15), std::string("HTTP/1.1 200 X\r\n\r\n[[[[{"),
        std::string("HTTP/1.1 200 X\r\ncontent-length: 99999999999999999999\r\n\r\n"),
        std::string("HTTP/1.1 200 X\r\n\r\n[{\"kvCacheStats\":7}]"), std::string()}) {
    for (const char* path : {"/server_info", "/get_server_info", "/metrics", "/prometheus/metrics",
                             "/kv_event_sources", "/health_generate"}) {
      raw_[path] = garbage;
    }
    const EngineReport found = Ask();
    EXPECT_EQ(found.block_size, 0u);
  }
}

TEST_F(CapabilityTest, ReadsNoPageToAnEndThatDoesNotCome) {
  raw_["/server_info"] = "HTTP/1.1 200 X\r\n\r\n" + std::string(8 << 20, ' ');
  pages_["/metrics"] = kVllm;
  EXPECT_EQ(Ask().block_size, 16u);
}

// Each page comes only when all have been asked for: none waits for another.
TEST_F(CapabilityTest, AsksForAllPagesAtOnceSoThatDelaysDoNotAddUp) {
  std::mutex mutex;
  std::condition_variable changed;
  size_t asked = 0;
  const ScriptedServer server([&](RawSocket& socket) {
    const std::string head = socket.ReadUntil("\r\n\r\n");
    std::unique_lock lock(mutex);
    ++asked;
    changed.notify_all();
    if (!changed.wait_for(lock, kPatience, [&] { return asked >= 3; })) return;
    const bool here = head.find("/prometheus/metrics") != std::string::npos;
    const std::string_view body = here ? kTrtllmPrometheus : "[]";
    socket.Send(fmt::format("HTTP/1.1 200 X\r\ncontent-length: {}\r\n\r\n{}", body.size(), body));
  });
  EXPECT_EQ(Ask(server.url(), kPatience).block_size, 64u);
}

// A page that answers nothing is not waited for once another has all of it.
TEST_F(CapabilityTest, StopsAskingOnceItKnows) {
  const ScriptedServer server([&](RawSocket& socket) {
    const std::string head = socket.ReadUntil("\r\n\r\n");
    if (head.find("/server_info") == std::string::npos) {
      socket.ReadUntil("never");  // until the client gives up
      return;
    }
    socket.Send(
        fmt::format("HTTP/1.1 200 X\r\ncontent-length: {}\r\n\r\n{}", kSglang.size(), kSglang));
  });
  EXPECT_EQ(Ask(server.url(), std::chrono::hours(1)).event_block_size(), 64u);
}

// A page that never arrives leaves time for the others.
TEST_F(CapabilityTest, LearnsFromTheOtherPagesWhatASilentOneDoesNotSay) {
  const ScriptedServer server([&](RawSocket& socket) {
    const std::string head = socket.ReadUntil("\r\n\r\n");
    if (head.find("/server_info") != std::string::npos) {
      socket.ReadUntil("never");  // until the client gives up
      return;
    }
    socket.Send(fmt::format("HTTP/1.1 200 X\r\ncontent-length: {}\r\n\r\n{}", kVllm.size(), kVllm));
  });
  EXPECT_EQ(Ask(server.url(), milliseconds(3000)).block_size, 16u);
}

TEST_F(CapabilityTest, DoesNotWaitBeyondTheDeadlineForAPageThatDrips) {
  const ScriptedServer server([](RawSocket& socket) {
    socket.ReadUntil("\r\n\r\n");
    socket.Send("HTTP/1.1 200 X\r\n\r\n");
    for (int i = 0; i < 1000 && socket.Send("\n"); ++i) {
      std::this_thread::sleep_for(milliseconds(2));
    }
    socket.Send(kVllm);  // too late
  });
  EXPECT_EQ(Ask(server.url(), milliseconds(100)), EngineReport());
}

TEST_F(CapabilityTest, AsksNothingOnceTheTimeIsUp) {
  pages_["/metrics"] = kVllm;
  EXPECT_FALSE(Ask(Duration{}).engine != EngineKind::kUnknown);
  EXPECT_THAT(asked_, IsEmpty());
}

}  // namespace
}  // namespace fathom
