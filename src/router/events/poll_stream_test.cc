// The intake in front of an engine whose events are polled, beside other routers.
#include "router/events/poll_stream.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <mutex>

#include "router/events/intake.h"
#include "testing/becomes.h"
#include "testing/loopback_server.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Answers polls from a list, and with no events after that.
class PolledEnginePages final : private HttpHandler {
 public:
  explicit PolledEnginePages(bool refuses_options = true)
      : refuses_options_(refuses_options),
        server_(thread_, *this, {.keep_alive_timeout = milliseconds(100)}) {}

  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_.address().port()); }
  int polls() const { return polls_; }
  // A poll that finds no events waits for some, as the engine lets it.
  void Hold(bool holds) { holds_ = holds; }
  bool holding() const { return held_ > 0; }
  // Polls are answered 503, as by an engine that is not ready.
  void Fail(bool fails) { fails_ = fails; }
  void Add(std::string answer) {
    const std::lock_guard lock(mutex_);
    answers_.push_back(std::move(answer));
  }

 private:
  Task<void> Handle(ServerConnection& connection) override {
    const std::string method(connection.head().method);
    const bool path = connection.head().target == PollStream::kPath;
    auto reading = connection.ReadBody();
    co_await reading;
    Answer answer{.status = 404, .body = "{}", .headers = {}};
    if (path && method == "POST") {
      ++polls_;
      ++held_;
      while (holds_ && empty()) co_await thread_.loop().Sleep(milliseconds(5));
      --held_;
      if (fails_) {
        answer.status = 503;
      } else {
        answer = {.status = 200, .body = Next(), .headers = {}};
      }
    }
    if (path && method == "OPTIONS" && refuses_options_) answer.status = 405;
    auto responding = connection.Respond(answer);
    co_await responding;
  }
  Answer Refuse(const RequestProblem& problem) override {
    return {.status = problem.status, .body = problem.what, .headers = {}};
  }
  bool empty() const {
    const std::lock_guard lock(mutex_);
    return answers_.empty();
  }
  std::string Next() {
    const std::lock_guard lock(mutex_);
    if (answers_.empty()) return "[]";
    std::string answer = std::move(answers_.front());
    answers_.pop_front();
    return answer;
  }

  const bool refuses_options_;
  std::atomic<int> polls_ = 0;
  std::atomic<int> held_ = 0;
  std::atomic<bool> holds_ = false;
  std::atomic<bool> fails_ = false;
  mutable std::mutex mutex_;
  std::deque<std::string> answers_;  // guarded by mutex_
  LoopThread thread_;
  LoopbackServer server_;
};

// Other routers, as the test wants them.
class ScriptedTurn final : public PollTurn {
 public:
  bool Mine(WorkerId) override {
    if (!mine) ++in_vain;
    return mine;
  }
  std::optional<PolledView> Known(WorkerId) const override {
    const std::lock_guard lock(mutex_);
    return known_;
  }
  void Polled(WorkerId, PolledWord word) override {
    const std::lock_guard lock(mutex_);
    words_.push_back(std::move(word));
  }
  void Rests(WorkerId) override { ++rests; }
  void Ends(WorkerId) override { ++ends; }
  bool telling() const override { return tells; }
  bool alone() const override { return false; }

  void SetKnown(PolledView view) {
    const std::lock_guard lock(mutex_);
    known_ = std::move(view);
  }
  std::vector<PolledWord> words() const {
    const std::lock_guard lock(mutex_);
    return words_;
  }

  std::atomic<bool> mine = false;
  std::atomic<int> in_vain = 0;  // times that it was not this router's turn
  std::atomic<bool> tells = false;
  std::atomic<int> rests = 0;
  std::atomic<int> ends = 0;

 private:
  mutable std::mutex mutex_;
  std::optional<PolledView> known_;
  std::vector<PolledWord> words_;
};

// Events without blocks.
std::string PolledBody(uint64_t from, uint64_t to) {
  std::string body = "[";
  for (uint64_t id = from; id < to; ++id) {
    if (id > from) body += ',';
    body += R"({"event_id":)" + std::to_string(id) + R"(,"data":{"type":"created"}})";
  }
  return body + "]";
}

// A router that follows one engine.
class PolledRouter {
 public:
  void Start(const std::string& url, PollTurn* turn, SnapshotSource* snapshots = nullptr) {
    worker_ = *fleet_.Add({.url = url});
    sizes_.Join(worker_, TimePoint{});
    sizes_.Serves(worker_->id(), {"m"}, TimePoint{});
    sizes_.Reported(worker_->id(), {}, TimePoint{});
    const auto endpoint = std::make_shared<const Endpoint>(Endpoint{*Url::Parse(url), nullptr});
    IntakeOptions options;
    options.port = 1;  // no engine publishes there
    options.poll_interval = milliseconds(1);
    options.look_again = milliseconds(10);
    intake_ = *Intake::Create(
        options, fleet_, [endpoint](WorkerId) { return endpoint; }, resolver_, index_, board_,
        sizes_, log_);
    if (turn != nullptr) intake_->SharePolls(*turn);
    if (snapshots != nullptr) intake_->AskFirst(*snapshots);
    intake_->Start();
  }
  // With some time for the stream to end, which nobody waits for.
  void Stop() {
    intake_->StopPolling();
    std::this_thread::sleep_for(milliseconds(150));
    intake_->Stop();
  }
  // The last event id that was applied.
  int64_t last() const {
    const auto feeds = board_.All();
    return feeds.empty() ? -1 : feeds.front()->last_sequence.load();
  }
  bool IsPolled() const { return !board_.All().empty(); }
  const FeedStatus& status() const { return *board_.All().front(); }

  Log log_{STDERR_FILENO, LogLevel::kOff};
  Fleet fleet_{BreakerOptions{}};
  Resolver resolver_;
  CacheIndex index_{64 << 20, 7};
  FeedBoard board_;
  BlockSizes sizes_{{}, false, fleet_, log_, TimePoint(seconds(1))};
  std::shared_ptr<Worker> worker_;
  std::unique_ptr<Intake> intake_;
};

class PollStreamTest : public testing::Test, protected PolledRouter {};

TEST_F(PollStreamTest, OneRouterPolls) {
  PolledEnginePages engine;
  engine.Add(PolledBody(0, 3));
  engine.Add(PolledBody(3, 5));
  Start(engine.url(), nullptr);
  EXPECT_TRUE(Becomes([&] { return last() == 4; }));
  engine.Add(PolledBody(0, 2));  // another process
  EXPECT_TRUE(Becomes([&] { return last() == 1; }));
  EXPECT_EQ(board_.All().front()->restarts.Get(), 1u);
  EXPECT_EQ(board_.All().front()->gaps.Get(), 0u);
  Stop();
}

TEST_F(PollStreamTest, ARouterWhoseTurnItIsNotLearnsFromOthersAndDoesNotPoll) {
  PolledEnginePages engine;
  engine.Add(PolledBody(7, 9));
  ScriptedTurn turn;
  turn.SetKnown({.process = 3, .next = {{0, 0}}});
  Start(engine.url(), &turn);
  ASSERT_TRUE(Becomes([&] { return IsPolled(); }));
  intake_->TakePolled(worker_->id(), {{3, {{0, 7}}}, PolledBody(4, 7), true});  // it came early
  intake_->TakePolled(worker_->id(), {{3, {{0, 4}}}, PolledBody(0, 4), true});
  EXPECT_TRUE(Becomes([&] { return last() == 6; }));
  EXPECT_EQ(engine.polls(), 0);
  turn.mine = true;
  EXPECT_TRUE(Becomes([&] { return last() == 8; }));
  Stop();
  ASSERT_FALSE(turn.words().empty());
  const auto words = turn.words();
  const auto told =
      std::ranges::find_if(words, [](const auto& word) { return !word.body.empty(); });
  ASSERT_NE(told, words.end());
  EXPECT_EQ(*told, (PolledWord{{3, {{0, 9}}}, PolledBody(7, 9), true}));
}

// The router that polls has been given everything that happened before, and passes it on once.
TEST_F(PollStreamTest, WhatOthersPassOnBeforeTheStreamBeginsIsNotLost) {
  PolledEnginePages engine;
  ScriptedTurn turn;
  Start(engine.url(), &turn);
  intake_->TakePolled(worker_->id(), {{1, {{0, 3}}}, PolledBody(0, 3), true});
  EXPECT_FALSE(IsPolled());
  turn.SetKnown({.process = 1, .next = {{0, 5}}});
  ASSERT_TRUE(Becomes([&] { return IsPolled(); }));
  intake_->TakePolled(worker_->id(), {{1, {{0, 5}}}, PolledBody(3, 5), true});
  EXPECT_TRUE(Becomes([&] { return last() == 4; }));
  EXPECT_EQ(board_.All().front()->batches.Get(), 5u);
  EXPECT_EQ(board_.All().front()->gaps.Get(), 0u);
  EXPECT_EQ(engine.polls(), 0);
  Stop();
}

TEST_F(PollStreamTest, TheFirstAnswerIsPassedOn) {
  PolledEnginePages engine;
  engine.Add(PolledBody(0, 3));
  ScriptedTurn turn;
  turn.mine = true;
  Start(engine.url(), &turn);
  EXPECT_TRUE(Becomes([&] { return last() == 2; }));
  Stop();
  EXPECT_EQ(turn.words().front(), (PolledWord{{1, {{0, 3}}}, PolledBody(0, 3), true}));
  EXPECT_GE(turn.ends, 1);  // it has stopped
}

TEST_F(PollStreamTest, ARouterThatStopsHavingTheTurnStopsPolling) {
  PolledEnginePages engine;
  ScriptedTurn turn;
  turn.mine = true;
  Start(engine.url(), &turn);
  EXPECT_TRUE(Becomes([&] { return engine.polls() > 3; }));
  turn.mine = false;
  const int polls = engine.polls();
  std::this_thread::sleep_for(milliseconds(300));
  EXPECT_LE(engine.polls(), polls + 2);  // those that had begun
  Stop();
}

// Whether it answers polls can only be found out by a poll.
TEST_F(PollStreamTest, AnEngineWithoutAPathOfPollsIsAskedOnceAndItsAnswerPassedOn) {
  PolledEnginePages engine(false);
  engine.Add(PolledBody(0, 3));
  ScriptedTurn turn;
  Start(engine.url(), &turn);
  EXPECT_TRUE(Becomes([&] { return last() == 2; }));
  EXPECT_EQ(engine.polls(), 1);
  Stop();
  EXPECT_EQ(turn.words().front().body, PolledBody(0, 3));
}

TEST_F(PollStreamTest, AWorkerWhoseFirstPollFailedHearsItsGroupFromThenOn) {
  PolledEnginePages engine;
  engine.Fail(true);
  ScriptedTurn turn;
  turn.mine = true;
  Start(engine.url(), &turn);
  ASSERT_TRUE(Becomes([&] { return engine.polls() > 1; }));
  ASSERT_FALSE(board_.All().empty()) << "its conventional port is tried meanwhile";
  turn.mine = false;
  ASSERT_TRUE(Becomes([&] { return turn.in_vain > 0; })) << "it waits for its turn";
  engine.Fail(false);
  intake_->TakePolled(worker_->id(), {{1, {{0, 3}}}, PolledBody(0, 3), true});
  turn.SetKnown({.process = 1, .next = {{0, 5}}});
  ASSERT_TRUE(Becomes([&] {
    const FeedBoard::Feeds feeds = board_.All();  // the stream of the port ends, and its feed
    return feeds.size() == 1 && feeds[0]->source.ends_with(PollStream::kPath);
  }));
  intake_->TakePolled(worker_->id(), {{1, {{0, 5}}}, PolledBody(3, 5), true});
  EXPECT_TRUE(Becomes([&] { return last() == 4; }));
  EXPECT_EQ(status().batches.Get(), 5u);
  EXPECT_EQ(status().gaps.Get(), 0u);
  Stop();
}

TEST_F(PollStreamTest, APollThatTheEngineHoldsIsPassedOnByARouterThatEnds) {
  PolledEnginePages engine;
  engine.Add(PolledBody(0, 3));
  ScriptedTurn turn;
  turn.mine = true;
  Start(engine.url(), &turn);
  ASSERT_TRUE(Becomes([&] { return last() == 2; }));
  engine.Hold(true);
  ASSERT_TRUE(Becomes([&] { return engine.holding(); }));
  intake_->StopPolling();
  ASSERT_TRUE(Becomes([&] { return turn.ends > 0; }));
  EXPECT_TRUE(intake_->polling());
  const int polls = engine.polls();
  engine.Add(PolledBody(3, 5));
  EXPECT_TRUE(Becomes([&] { return !intake_->polling(); }));
  EXPECT_EQ(turn.words().back(), (PolledWord{{1, {{0, 5}}}, PolledBody(3, 5), false}));
  EXPECT_EQ(engine.polls(), polls);
  turn.tells = true;
  EXPECT_TRUE(intake_->polling()) << "it has not left yet";
  Stop();
}

TEST_F(PollStreamTest, SoIsTheFirstPollOfAll) {
  PolledEnginePages engine;
  engine.Hold(true);
  ScriptedTurn turn;
  turn.mine = true;
  Start(engine.url(), &turn);
  ASSERT_TRUE(Becomes([&] { return engine.holding(); }));
  intake_->StopPolling();
  EXPECT_TRUE(intake_->polling());
  engine.Add(PolledBody(0, 3));
  EXPECT_TRUE(Becomes([&] { return !intake_->polling(); }));
  ASSERT_FALSE(turn.words().empty());
  EXPECT_EQ(turn.words().front(), (PolledWord{{1, {{0, 3}}}, PolledBody(0, 3), false}));
  EXPECT_EQ(engine.polls(), 1);
  Stop();
}

TEST_F(PollStreamTest, ARouterThatPollsWithAnOldViewIsCorrected) {
  PolledEnginePages engine;
  ScriptedTurn turn;
  turn.SetKnown({.process = 3, .next = {{0, 7}}});
  Start(engine.url(), &turn);
  ASSERT_TRUE(Becomes([&] { return IsPolled(); }));
  intake_->TakePolled(worker_->id(), {{2, {{0, 9}}}, PolledBody(7, 9), true});
  EXPECT_TRUE(Becomes([&] { return !turn.words().empty(); }));
  Stop();
  EXPECT_EQ(turn.words().front(), (PolledWord{{3, {{0, 7}}}, "", false}));
}

// --- taking over --------------------------------------------------------------------------------

constexpr size_t kPolledTokens = 4;  // of a block

std::string PolledEventText(uint64_t id, const std::string& data) {
  return R"({"event_id":)" + std::to_string(id) + R"(,"window_size":1024,"data":)" + data + "}";
}

// Blocks of one prompt, with consecutive hashes.
std::string StoredText(uint64_t id, uint64_t first_hash, size_t blocks, int level = 0) {
  std::string list;
  for (size_t i = 0; i < blocks; ++i) {
    std::string tokens;
    for (size_t t = 0; t < kPolledTokens; ++t) {
      tokens += (t == 0 ? "" : ",") +
                (R"({"token_id":)" + std::to_string(first_hash * 1000 + i * 10 + t)) +
                R"(,"token_extra_id":0})";
    }
    list += (i == 0 ? "" : ",") +
            (R"({"type":"stored_block","block_hash":)" + std::to_string(first_hash + i)) +
            R"(,"cache_level":)" + std::to_string(level) + R"(,"tokens":[)" + tokens + "]}";
  }
  return PolledEventText(id, R"({"type":"stored","parent_hash":null,"blocks":[)" + list + "]}");
}

std::string RemovedText(uint64_t id, uint64_t hash) {
  return PolledEventText(id, R"({"type":"removed","block_hashes":[)" + std::to_string(hash) + "]}");
}

// What another router knows.
class PeerSnapshots final : public SnapshotSource {
 public:
  explicit PeerSnapshots(Intake& peer) : peer_(peer) {}

  void Ask(const RankLabel& rank, std::weak_ptr<const void> /*asker*/, Answer answer) override {
    ++asked;
    peer_.Export(rank, size_t{64} << 20,
                 [this, answer = std::move(answer)](Result<std::string> told) mutable {
                   std::shared_ptr<const HoldingSnapshot> snapshot;
                   if (told) {
                     auto opened = HoldingSnapshot::Open(*std::move(told));
                     if (opened) snapshot = std::make_shared<HoldingSnapshot>(*std::move(opened));
                   }
                   const std::lock_guard lock(mutex_);
                   if (!held_) return answer(std::move(snapshot));
                   late_.push_back([answer = std::move(answer), snapshot]() mutable {
                     answer(std::move(snapshot));
                   });
                 });
  }
  void Hold() { held_ = true; }
  bool Holds() {
    const std::lock_guard lock(mutex_);
    return !late_.empty();
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    for (auto& answer : late_) answer();
    late_.clear();
  }

  std::atomic<int> asked = 0;

 private:
  Intake& peer_;
  std::atomic<bool> held_ = false;
  std::mutex mutex_;
  std::deque<std::move_only_function<void()>> late_;  // guarded by mutex_
};

// One router polls an engine that has 10 blocks on the device and 2 beside it.
class PolledTakeoverTest : public testing::Test {
 protected:
  void SetUp() override {
    engine_.Add("[" + PolledEventText(0, R"({"type":"created"})") + "," + StoredText(1, 100, 10) +
                "," + StoredText(2, 200, 2, 1) + "]");
    polls_.mine = true;
    old_.Start(engine_.url(), &polls_);
    ASSERT_TRUE(Becomes([&] { return old_.last() == 2; }));
    ASSERT_EQ(old_.status().stored_blocks.Get(), 12u);
    ASSERT_TRUE(Becomes([&] { return old_.status().connected.load(); })) << "only then it tells";
    snapshots_ = std::make_unique<PeerSnapshots>(*old_.intake_);
  }
  void Join(PolledView known) {
    listens_.SetKnown(std::move(known));
    newcomer_.Start(engine_.url(), &listens_, snapshots_.get());
    ASSERT_TRUE(Becomes([&] { return newcomer_.IsPolled(); }));
  }
  void PassOn(uint64_t next, const std::string& events) {
    newcomer_.intake_->TakePolled(newcomer_.worker_->id(),
                                  {{1, {{0, next}}}, "[" + events + "]", true});
  }
  void TearDown() override {
    if (newcomer_.intake_) newcomer_.Stop();
    old_.Stop();
  }

  PolledEnginePages engine_;
  ScriptedTurn polls_;
  ScriptedTurn listens_;
  PolledRouter old_;
  std::unique_ptr<PeerSnapshots> snapshots_;
  PolledRouter newcomer_;
};

TEST_F(PolledTakeoverTest, ANewcomerHoldsWhatTheOtherKnowsAndGoesOn) {
  Join({.process = 1, .next = {{0, 3}}});
  EXPECT_TRUE(Becomes([&] { return newcomer_.last() == 2; }));
  EXPECT_EQ(newcomer_.status().stored_blocks.Get(), 12u);
  EXPECT_EQ(newcomer_.intake_->snapshot_counts().adopted, 1u);
  PassOn(5, RemovedText(3, 201) + "," + StoredText(4, 300, 3));
  EXPECT_TRUE(Becomes([&] { return newcomer_.last() == 4; }));
  EXPECT_EQ(newcomer_.status().removed_blocks.Get(), 1u) << "it was not on the device";
  EXPECT_EQ(newcomer_.status().unknown_removed.Get(), 0u);
  EXPECT_EQ(newcomer_.status().stored_blocks.Get(), 15u);
  EXPECT_EQ(newcomer_.status().gaps.Get(), 0u);
  EXPECT_EQ(newcomer_.status().restarts.Get(), 0u);
}

TEST_F(PolledTakeoverTest, WhatIsHeardMeanwhileIsAppliedAfterwards) {
  snapshots_->Hold();
  Join({.process = 1, .next = {{0, 3}}});
  ASSERT_TRUE(Becomes([&] { return snapshots_->Holds(); }));
  PassOn(3, StoredText(2, 200, 2, 1));  // the snapshot has it
  PassOn(4, StoredText(3, 300, 3));
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_LT(newcomer_.last(), 0);
  snapshots_->Release();
  EXPECT_TRUE(Becomes([&] { return newcomer_.last() == 3; }));
  EXPECT_EQ(newcomer_.status().stored_blocks.Get(), 15u);
  EXPECT_EQ(newcomer_.status().batches.Get(), 1u);
}

TEST_F(PolledTakeoverTest, ASnapshotOfAnEarlierProcessIsDropped) {
  Join({.process = 2, .next = {{0, 3}}});
  EXPECT_TRUE(Becomes([&] { return newcomer_.intake_->snapshot_counts().dropped == 1u; }));
  EXPECT_EQ(newcomer_.status().stored_blocks.Get(), 0u);
}

TEST_F(PolledTakeoverTest, ARouterThatEndsWhileItWaitsForAnAnswerEnds) {
  snapshots_->Hold();
  Join({.process = 1, .next = {{0, 3}}});
  ASSERT_TRUE(Becomes([&] { return snapshots_->Holds(); }));
}

}  // namespace
}  // namespace fathom
