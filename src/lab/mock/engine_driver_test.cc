#include "lab/mock/engine_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>

namespace fathom {
namespace {

using std::chrono::milliseconds;

// Every step lasts as long as it is told.
class FixedProfile final : public TimingProfile {
 public:
  explicit FixedProfile(Duration lasts) : lasts_(lasts) {}
  Duration StepTime(const StepLoad&) const override { return lasts_; }

 private:
  const Duration lasts_;
};

// A client that takes everything as it comes, and ends the loop when all of `clients` are done.
class Client final : public TicketWatcher {
 public:
  Client(Loop& loop, EngineDriver& driver, size_t& clients)
      : loop_(loop), clients_(clients), ticket_(std::make_unique<Ticket>(driver, *this)) {
    ++clients_;
  }

  Ticket& ticket() { return *ticket_; }
  void Submit(std::vector<TokenId> prompt, uint32_t max_tokens) {
    EngineRequest request;
    request.prompt = std::move(prompt);
    request.max_tokens = max_tokens;
    ASSERT_TRUE(ticket_->Submit(std::move(request)));
    ++running_;
  }

  void OnTokens() override {
    while (const auto token = ticket_->Take()) {
      taken.push_back(*token);
      times.push_back(loop_.now());
      if (token->finished) --running_;
      if (taken.size() == leave_after) running_ = 0;
    }
    if (running_ > 0) return;
    ticket_.reset();
    if (--clients_ == 0) loop_.Stop();
  }

  std::vector<Ticket::Token> taken;
  std::vector<TimePoint> times;
  size_t leave_after = 0;

 private:
  Loop& loop_;
  size_t& clients_;
  std::unique_ptr<Ticket> ticket_;
  size_t running_ = 0;
};

std::vector<TokenId> DriverPrompt(size_t size, TokenId first = 1) {
  std::vector<TokenId> prompt(size);
  std::iota(prompt.begin(), prompt.end(), first);
  return prompt;
}

class EngineDriverTest : public testing::Test {
 protected:
  EngineDriver& Make(double speedup, Duration step) {
    profile_ = std::make_unique<FixedProfile>(step);
    driver_ = std::make_unique<EngineDriver>(
        loop_, EngineOptions{.block_size = 4, .num_blocks = 65, .max_num_seqs = 8}, *profile_,
        speedup);
    return *driver_;
  }

  Loop loop_;
  size_t clients_ = 0;
  std::unique_ptr<FixedProfile> profile_;
  std::unique_ptr<EngineDriver> driver_;
};

TEST_F(EngineDriverTest, HandsOutTheTokensOfASequenceOneStepAfterTheOther) {
  EngineDriver& driver = Make(1, milliseconds(5));
  Client client(loop_, driver, clients_);
  const TimePoint begun = loop_.now();
  loop_.Post([&] { client.Submit(DriverPrompt(10), 4); });
  loop_.Run();
  ASSERT_EQ(client.taken.size(), 4u);
  EXPECT_FALSE(client.taken[2].finished);
  EXPECT_TRUE(client.taken[3].finished);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_GE(client.times[i] - begun, static_cast<int64_t>(i + 1) * milliseconds(5));
  }
  EXPECT_EQ(driver.statistics().running, 0u);
  EXPECT_EQ(driver.statistics().counters.generated_tokens, 4u);
  EXPECT_EQ(driver.first_token_times().count(), 1u);
}

TEST_F(EngineDriverTest, IsFasterByItsSpeedup) {
  EngineDriver& driver = Make(1e6, std::chrono::hours(1));
  Client client(loop_, driver, clients_);
  const TimePoint begun = loop_.now();
  loop_.Post([&] { client.Submit(DriverPrompt(10), 10); });  // ten hours, or 36 ms
  loop_.Run();
  ASSERT_EQ(client.taken.size(), 10u);
  EXPECT_GE(client.times.back() - begun, milliseconds(36));
}

TEST_F(EngineDriverTest, RunsTheSequencesOfATicketTogether) {
  EngineDriver& driver = Make(100, milliseconds(5));
  Client client(loop_, driver, clients_);
  loop_.Post([&] {
    client.Submit(DriverPrompt(10), 2);
    client.Submit(DriverPrompt(10), 3);
  });
  loop_.Run();
  std::vector<uint32_t> choices;
  for (const auto& token : client.taken) choices.push_back(token.choice);
  EXPECT_THAT(choices, testing::ElementsAre(0, 1, 0, 1, 1));
  EXPECT_EQ(client.taken[1].cached_tokens, 8u);  // what the first of them stored in that very step
}

TEST_F(EngineDriverTest, CancelsWhatAClientLeavesBehind) {
  EngineDriver& driver = Make(1000, milliseconds(5));
  Client stays(loop_, driver, clients_);
  Client leaves(loop_, driver, clients_);
  leaves.leave_after = 2;
  loop_.Post([&] {
    leaves.Submit(DriverPrompt(10), 1000 / 5);
    stays.Submit(DriverPrompt(10, 100), 20);
  });
  loop_.Run();
  EXPECT_EQ(leaves.taken.size(), 2u);
  EXPECT_EQ(stays.taken.size(), 20u);
  EXPECT_EQ(driver.load(), 0u);
  EXPECT_EQ(driver.core().cache_usage(), 0);
}

TEST_F(EngineDriverTest, CancelsOneChoiceAndGoesOnWithTheOther) {
  EngineDriver& driver = Make(1000, milliseconds(5));
  Client client(loop_, driver, clients_);
  loop_.Post([&] {
    client.Submit(DriverPrompt(10), 5);
    client.Submit(DriverPrompt(10, 100), 1);
    client.ticket().Cancel(0);
  });
  // One of the two never finishes, so the loop is ended from here.
  client.leave_after = 1;
  loop_.Run();
  ASSERT_EQ(client.taken.size(), 1u);
  EXPECT_EQ(client.taken[0].choice, 1u);
}

TEST_F(EngineDriverTest, TellsItsListenerWhatTheCacheDid) {
  EngineDriver& driver = Make(1000, milliseconds(5));
  std::vector<KvEvent> heard;
  driver.SetListener([&](const std::vector<KvEvent>& events) {
    heard.insert(heard.end(), events.begin(), events.end());
  });
  Client client(loop_, driver, clients_);
  loop_.Post([&] { client.Submit(DriverPrompt(9), 1); });
  loop_.Run();
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(std::get<BlocksStored>(heard[0]).tokens, DriverPrompt(8));
}

TEST_F(EngineDriverTest, ResetsItsCacheOnlyWhileNobodyUsesIt) {
  EngineDriver& driver = Make(1000, milliseconds(5));
  Client client(loop_, driver, clients_);
  bool in_use = true;
  loop_.Post([&] { client.Submit(DriverPrompt(9), 3); });
  driver.SetListener([&](const auto&) { in_use = driver.ResetPrefixCache(); });
  loop_.Run();
  EXPECT_FALSE(in_use);
  EXPECT_TRUE(driver.ResetPrefixCache());
  EXPECT_EQ(driver.core().pool().cached_blocks(), 0u);
}

TEST_F(EngineDriverTest, SaysNothingMoreWhenFrozen) {
  EngineDriver& driver = Make(1, milliseconds(1));
  auto client = std::make_unique<Client>(loop_, driver, clients_);
  loop_.Post([&] {
    client->Submit(DriverPrompt(9), 3);
    driver.Freeze();
  });
  struct Alarm : Timer {
    explicit Alarm(Loop& l)
        : Timer([](Timer& t) { static_cast<Alarm&>(t).loop.Stop(); }), loop(l) {}
    Loop& loop;
  } alarm(loop_);
  loop_.Post([&] { loop_.timers().Arm(alarm, loop_.now() + milliseconds(30)); });
  loop_.Run();
  EXPECT_TRUE(client->taken.empty());
  client.reset();
  EXPECT_EQ(driver.load(), 0u);
}

TEST_F(EngineDriverTest, KeepsItsIterationsUntilTheyAreRead) {
  EngineDriver& driver = Make(1000, milliseconds(5));
  Client client(loop_, driver, clients_);
  loop_.Post([&] { client.Submit(DriverPrompt(9), 3); });
  loop_.Run();
  const auto iterations = driver.TakeIterations();
  ASSERT_EQ(iterations.size(), 3u);
  EXPECT_EQ(iterations[0].new_tokens, 9u);
  EXPECT_EQ(iterations[1].decoding, 1u);
  EXPECT_TRUE(driver.TakeIterations().empty());
}

TEST_F(EngineDriverTest, RefusesWhatCanNeverFit) {
  EngineDriver& driver = Make(1, milliseconds(5));
  Client client(loop_, driver, clients_);
  EngineRequest request;
  request.prompt = DriverPrompt(4 * 65);
  EXPECT_FALSE(client.ticket().Submit(std::move(request)));
  EXPECT_EQ(driver.load(), 0u);
}

}  // namespace
}  // namespace fathom
