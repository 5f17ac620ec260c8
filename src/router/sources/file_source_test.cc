#include "router/sources/file_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>

#include "testing/becomes.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Real files; no worker is probed.
class FileSourceTest : public testing::Test {
 protected:
  FileSourceTest() {
    std::string pattern = testing::TempDir() + "/file_source_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~FileSourceTest() override {
    source_.reset();
    std::filesystem::remove_all(folder_);
    ::close(log_file_);
  }

  std::string Path(const std::string& name = "workers.yaml") const { return folder_ + "/" + name; }
  // As an editor does: another file in its place.
  void Write(const std::string& text) const {
    std::ofstream(Path("new")) << text;
    std::filesystem::rename(Path("new"), Path());
  }
  void Start(WorkerRequest entry = {}) {
    entry.url = "file://" + Path();
    entry.from = WorkerRequest::From::kOperator;
    auto source = FileSource::Create(entry, muster_, log_,
                                     {.interval = milliseconds(5),
                                      .at_rest = milliseconds(20),
                                      .away = milliseconds(40),
                                      .again = milliseconds(60)});
    ASSERT_TRUE(source) << source.error().what;
    source_ = *std::move(source);
    source_->Start();
  }

  std::vector<std::string> Urls() const {
    std::vector<std::string> urls;
    for (const Member& member : fleet_.Current()->members()) {
      urls.push_back(member.worker->spec().url);
    }
    std::ranges::sort(urls);
    return urls;
  }
  bool FleetBecomes(const std::vector<std::string>& urls) const {
    return Becomes([&] { return Urls() == urls; });
  }
  Muster::SourceState State() const { return muster_.Sources().at(0); }
  bool IsRefusedFor(std::string_view reason) const {
    return Becomes([&] { return !State().ok && State().error.contains(reason); });
  }
  bool IsOk() const {
    return Becomes([&] { return State().ok; });
  }
  size_t Said(std::string_view what) const {
    std::string text(1 << 20, '\0');
    text.resize(static_cast<size_t>(pread(log_file_, text.data(), text.size(), 0)));
    size_t count = 0;
    for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
    return count;
  }

  std::string folder_;
  const int log_file_ = memfd_create("log", 0);
  Log log_{log_file_, LogLevel::kInfo};
  Loop unused_;
  Resolver resolver_;
  Fleet fleet_{BreakerOptions{}};
  Prober prober_{unused_, resolver_, fleet_, ProbeOptions{}, log_};
  std::atomic<int> keys_left_ = 1'000'000;  // how often a key's variable can still be read
  Directory directory_{fleet_,
                       prober_,
                       [this](const std::string&) {
                         return keys_left_-- > 0 ? std::optional<std::string>("key") : std::nullopt;
                       },
                       log_,
                       nullptr,
                       nullptr,
                       {"LISTED"}};
  Muster muster_{directory_, log_};
  std::unique_ptr<FileSource> source_;
};

constexpr const char* kFirst = "http://a:1";
constexpr const char* kSecond = "http://b:1";
constexpr const char* kRefusal = "What a source of workers says was refused";

TEST_F(FileSourceTest, TheFleetIsWhatTheFileNames) {
  Write("workers:\n  - http://a:1\n  - url: http://b:1\n    role: decode\n");
  Start();
  EXPECT_TRUE(FleetBecomes({kFirst, kSecond}));
  EXPECT_TRUE(IsOk());
  const auto fleet = fleet_.Current();
  EXPECT_EQ(fleet->Find(WorkerId::OfUrl(kSecond))->origin->role, "decode");
  const auto kept = fleet->Find(WorkerId::OfUrl(kSecond))->worker;
  Write("- {url: http://b:1, role: prefill}\n- http://c:1\n");
  EXPECT_TRUE(FleetBecomes({kSecond, "http://c:1"}));
  EXPECT_EQ(fleet_.Current()->Find(WorkerId::OfUrl(kSecond))->worker, kept);
  Write("workers: []\n");
  EXPECT_TRUE(FleetBecomes({}));
  EXPECT_TRUE(IsOk());
}

TEST_F(FileSourceTest, AFileIsRefusedAsAWholeAndSaidOnce) {
  Write("- http://a:1\n");
  Start();
  ASSERT_TRUE(FleetBecomes({kFirst}));
  Write("- http://b:1\n- url: http://c:1\n  kv_events: nonsense\n");
  EXPECT_TRUE(IsRefusedFor(Path() + ":2: kv_events"));
  EXPECT_THAT(Urls(), ElementsAre(kFirst));
  std::this_thread::sleep_for(milliseconds(50));  // ten looks
  EXPECT_EQ(Said(kRefusal), 1u);
  for (const char* bad : {"", "- k8s://prod/vllm:http\n", "- http://b:1\n- http://B:1/\n",
                          "- url: http://b:1\n  api_key_env: SECRET\n", "workers: {"}) {
    const size_t said = Said(kRefusal);
    Write(bad);
    EXPECT_TRUE(Becomes([&] { return Said(kRefusal) == said + 1; })) << bad;
    EXPECT_THAT(Urls(), ElementsAre(kFirst));
  }
  Write("- http://b:1\n");
  EXPECT_TRUE(FleetBecomes({kSecond}));
  EXPECT_TRUE(IsOk());
}

TEST_F(FileSourceTest, AFileThatIsAwayChangesNothing) {
  Start();
  EXPECT_TRUE(IsRefusedFor("No such file or directory"));
  EXPECT_EQ(muster_.pending(), 0u);
  Write("- http://a:1\n");
  EXPECT_TRUE(FleetBecomes({kFirst}));
  EXPECT_TRUE(IsOk());
  std::filesystem::rename(Path(), Path("aside"));
  EXPECT_TRUE(IsRefusedFor("No such file or directory"));
  EXPECT_THAT(Urls(), ElementsAre(kFirst));
  std::filesystem::rename(Path("aside"), Path());
  EXPECT_TRUE(IsOk());
  EXPECT_THAT(Urls(), ElementsAre(kFirst));
}

// As Kubernetes changes a ConfigMap: workers.yaml -> ..data/workers.yaml, ..data -> ..2026_1.
TEST_F(FileSourceTest, ALinkThatPointsElsewhereIsAChange) {
  for (const char* version : {"..1", "..2"}) {
    std::filesystem::create_directory(Path(version));
  }
  std::ofstream(Path("..1/workers.yaml")) << "- http://a:1\n";
  std::ofstream(Path("..2/workers.yaml")) << "- http://b:1\n";
  std::filesystem::create_symlink("..1", Path("..data"));
  std::filesystem::create_symlink("..data/workers.yaml", Path());
  Start();
  EXPECT_TRUE(FleetBecomes({kFirst}));
  std::filesystem::create_symlink("..2", Path("..tmp"));
  std::filesystem::rename(Path("..tmp"), Path("..data"));
  EXPECT_TRUE(FleetBecomes({kSecond}));
}

TEST_F(FileSourceTest, WhatHoldsForAllIsWrittenOnce) {
  Write("- http://a:1\n- {url: http://b:1, kv_events: tcp://x:7, labels: {zone: b}}\n");
  WorkerRequest all;
  all.kv_events = "tcp://*:+1000";
  all.api_key_env = "ANY";  // the operator's word
  all.labels = {{"zone", "a"}};
  Start(all);
  ASSERT_TRUE(FleetBecomes({kFirst, kSecond}));
  ASSERT_TRUE(IsOk());  // a worker is in the fleet a moment before its labels
  const auto fleet = fleet_.Current();
  const Member* first = fleet->Find(WorkerId::OfUrl(kFirst));
  EXPECT_EQ(first->worker->spec().kv_events, "tcp://a:1001");
  EXPECT_EQ(first->worker->spec().api_key, "key");
  EXPECT_EQ(first->origin->labels.at("zone"), "a");
  const Member* second = fleet->Find(WorkerId::OfUrl(kSecond));
  EXPECT_EQ(second->worker->spec().kv_events, "tcp://x:7");
  EXPECT_EQ(second->origin->labels.at("zone"), "b");
}

TEST_F(FileSourceTest, APipeAFolderAndAHugeFileAreRefused) {
  ASSERT_EQ(::mkfifo(Path().c_str(), 0600), 0);
  Start();
  EXPECT_TRUE(IsRefusedFor("is not a regular file"));
  ::unlink(Path().c_str());
  Write(std::string(FileSource::kMostBytes + 1, '#'));
  EXPECT_TRUE(IsRefusedFor("has more than 4194304 bytes"));
  ::unlink(Path().c_str());
  std::filesystem::create_directory(Path());
  EXPECT_TRUE(IsRefusedFor("is not a regular file"));
}

TEST_F(FileSourceTest, AWorkerThatTheFileNamesStaysThoughItCannotBeChanged) {
  Write("- http://a:1\n- http://b:1\n");
  Start();
  ASSERT_TRUE(FleetBecomes({kFirst, kSecond}));
  keys_left_ = 1;  // it is there when the entry is checked, and gone when it is applied
  Write("- {url: http://A:1/, api_key_env: LISTED}\n");
  EXPECT_TRUE(IsRefusedFor(Path() + ":1: "));
  EXPECT_THAT(Urls(), ElementsAre(kFirst));
  EXPECT_EQ(Said("Worker removed"), 1u);
}

TEST_F(FileSourceTest, ARefusedFileIsTriedAgainThoughItIsUnchanged) {
  Write(fmt::format("- {{url: 'https://a:1', ca_file: {}}}\n", Path("ca.pem")));
  Start();
  EXPECT_TRUE(IsRefusedFor("ca.pem"));
  std::this_thread::sleep_for(milliseconds(200));  // three tries
  EXPECT_EQ(Said(kRefusal), 1u);
  keys_left_ = 0;
  Write("- {url: http://a:1, api_key_env: LISTED}\n");
  EXPECT_TRUE(IsRefusedFor("LISTED"));
  keys_left_ = 1'000;
  EXPECT_TRUE(FleetBecomes({kFirst}));
  EXPECT_TRUE(IsOk());
  EXPECT_EQ(Said(kRefusal), 2u);
}

TEST_F(FileSourceTest, WorkersLeaveWithTheSource) {
  Write("- http://a:1\n");
  Start();
  ASSERT_TRUE(FleetBecomes({kFirst}));
  source_.reset();
  EXPECT_THAT(Urls(), IsEmpty());
}

}  // namespace
}  // namespace fathom
