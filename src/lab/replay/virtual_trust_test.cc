#include "lab/replay/virtual_trust.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <tuple>

#include "base/check.h"
#include "base/random.h"
#include "lab/replay/replay.h"
#include "testing/sanitizers.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::EndsWith;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint32_t kEngines = 4;
constexpr Duration kHour = std::chrono::hours(1);
// A sanitizer gets as long an hour with fewer requests in it.
constexpr double kSessionsPerSecond = kSanitized ? 1 : 3;
// Most of what such a cache held is evicted before its session's next turn.
constexpr uint32_t kSmallCache = kSanitized ? 250 : 400;
// There is hardly room for one of the longest prompts.
constexpr uint32_t kTinyCache = kSanitized ? 110 : 160;

struct Traffic {
  double sessions_per_second = kSessionsPerSecond;
  Duration thinking = seconds(20);  // between two turns, and a second
  uint64_t turns = 6;               // at most
  uint64_t answers = 16;            // tokens, at most
  bool alike = true;                // sessions begin with one of a few prompts
};

Duration Exponential(Random& random, Duration mean) {
  const double times = -std::log(1 - random.Unit());
  return Duration(static_cast<int64_t>(times * static_cast<double>(mean.count())));
}

// Each turn repeats all that was before it.
void AddSession(std::vector<TraceRequest>& trace, const Traffic& traffic, Random& random,
                uint64_t& next_id) {
  constexpr uint64_t kPrompts = 12;
  Duration at(static_cast<int64_t>(random.Unit() * static_cast<double>(kHour.count())));
  std::vector<uint64_t> ids = {traffic.alike ? random.Below(kPrompts) : kPrompts + next_id++};
  const uint64_t turns = 1 + random.Below(traffic.turns);
  for (uint64_t turn = 0; turn < turns && at < kHour; ++turn) {
    const uint64_t more = 1 + random.Below(2);
    for (uint64_t i = 0; i < more; ++i) ids.push_back(kPrompts + next_id++);
    const uint64_t cut = random.Below(kTokensPerTraceId);
    trace.push_back({.at = at,
                     .input = static_cast<uint32_t>(ids.size() * kTokensPerTraceId - cut),
                     .output = 1 + static_cast<uint32_t>(random.Below(traffic.answers)),
                     .ids = ids});
    at += seconds(1) + Exponential(random, traffic.thinking);
  }
}

std::vector<TraceRequest> TraceOf(const Traffic& traffic, uint64_t seed) {
  Random random(seed);
  std::vector<TraceRequest> trace;
  uint64_t next_id = 0;
  const double sessions = traffic.sessions_per_second * Seconds(kHour);
  for (double i = 0; i < sessions; ++i) AddSession(trace, traffic, random, next_id);
  std::ranges::sort(trace, {}, &TraceRequest::at);
  return trace;
}

ReplayOptions TrustedFleet(uint64_t seed) {
  ReplayOptions options;
  options.workers = kEngines;
  options.engine.block_size = 64;
  options.engine.num_blocks = kSmallCache;
  options.router.policy = ReplayPolicy::kKv;
  options.router.trust = TrustRules{};
  options.router.seed = seed;
  return options;
}

// Each engine in turn, again and again.
std::vector<Incident> InTurn(Duration apart, Incident::Kind kind, Duration away) {
  std::vector<Incident> incidents;
  for (Duration at = apart; at < kHour; at += apart) {
    incidents.push_back({at, incidents.size() % kEngines, kind, away});
  }
  return incidents;
}

ReplayReport PlayWhole(const std::vector<TraceRequest>& trace, const ReplayOptions& options) {
  const auto profile = TimingProfile::Named("polynomial");
  CHECK(profile);
  ReplayReport report = RunReplay(trace, options, **profile);
  EXPECT_EQ(report.requests + report.broken, trace.size());
  EXPECT_TRUE(report.books_empty);
  return report;
}

// "engine cause", once for each.
std::set<std::string> Doubts(const ReplayReport& report) {
  std::set<std::string> doubts;
  for (const VirtualTrust::Change& change : report.trust) {
    if (change.state != TrustState::kDoubted) continue;
    doubts.insert(std::to_string(change.engine) + " " + std::string(Name(change.cause)));
  }
  return doubts;
}

size_t TimesTrusted(const ReplayReport& report) {
  return static_cast<size_t>(
      std::ranges::count(report.trust, TrustState::kTrusted, &VirtualTrust::Change::state));
}

// Seed, and how long events take.
class HealthyHour : public testing::TestWithParam<std::tuple<uint64_t, Duration>> {
 protected:
  HealthyHour() { options_.router.event_delay = std::get<1>(GetParam()); }

  std::vector<TraceRequest> Hour(const Traffic& traffic = {}) const {
    return TraceOf(traffic, seed_);
  }

  const uint64_t seed_ = std::get<0>(GetParam());
  ReplayOptions options_ = TrustedFleet(seed_);
};

TEST_P(HealthyHour, RaisesNothingThoughMostBlocksAreEvicted) {
  const auto trace = Hour();
  const ReplayReport report = PlayWhole(trace, options_);
  EXPECT_THAT(Doubts(report), IsEmpty());
  EXPECT_EQ(TimesTrusted(report), kEngines);
  EXPECT_LT(report.reuse(), 0.75 * IdealReuse(trace, options_.engine.block_size));
}

TEST_P(HealthyHour, RaisesNothingThoughEnginesRestart) {
  options_.incidents = InTurn(seconds(50), Incident::Kind::kRestart, seconds(15));
  const ReplayReport report = PlayWhole(Hour(), options_);
  EXPECT_THAT(Doubts(report), IsEmpty());
  EXPECT_GT(report.broken, 0u);
}

TEST_P(HealthyHour, RaisesNothingThoughEnginesRestartBeforeAnybodyNotices) {
  options_.incidents = InTurn(seconds(50), Incident::Kind::kRestart, Duration());
  EXPECT_THAT(Doubts(PlayWhole(Hour(), options_)), IsEmpty());
}

TEST_P(HealthyHour, RaisesNothingThoughEnginesAreReplaced) {
  options_.incidents = InTurn(seconds(50), Incident::Kind::kReplace, seconds(15));
  const ReplayReport report = PlayWhole(Hour(), options_);
  EXPECT_THAT(Doubts(report), IsEmpty());
  EXPECT_GT(TimesTrusted(report), options_.incidents.size());
}

TEST_P(HealthyHour, RaisesNothingThoughEnginesAreOverloadedAndPreempt) {
  options_.engine.num_blocks = 250;
  options_.router.steering.queue_threshold = 0;
  const ReplayReport report =
      PlayWhole(Hour({.sessions_per_second = 0.3, .answers = 1200}), options_);
  EXPECT_THAT(Doubts(report), IsEmpty());
  EXPECT_GT(report.preemptions, 100u);
}

// By the time a session comes again, events have not yet said that it was evicted.
TEST_P(HealthyHour, RaisesNothingButChurnThoughWhatIsForetoldIsGoneAgain) {
  options_.engine.num_blocks = kTinyCache;
  options_.router.event_delay = milliseconds(1900);
  options_.incidents = InTurn(seconds(20), Incident::Kind::kRestart, seconds(1));
  const Traffic hasty{.sessions_per_second = 2 * kSessionsPerSecond,
                      .thinking = milliseconds(300),
                      .turns = 3,
                      .alike = false};
  EXPECT_THAT(Doubts(PlayWhole(Hour(hasty), options_)), testing::Each(EndsWith(" churn")));
}

constexpr std::tuple<uint64_t, Duration> kDelays[] = {
    {1, milliseconds(50)}, {2, milliseconds(0)}, {3, milliseconds(500)}};

INSTANTIATE_TEST_SUITE_P(Delays, HealthyHour,
                         testing::ValuesIn(kDelays, kDelays + (kSanitized ? 1 : 3)));

// Only the first engine has the fault, where it is one of events.
class FaultyHour : public testing::Test {
 protected:
  std::set<std::string> DoubtsWith(const EventFaults& faults) {
    options_.router.faults = {faults};
    return Doubts(PlayWhole(TraceOf({}, 1), options_));
  }

  ReplayOptions options_ = TrustedFleet(1);
};

TEST_F(FaultyHour, NamesEventsThatComeTooLateAndNothingElse) {
  EXPECT_THAT(DoubtsWith({.later = seconds(5)}), ElementsAre("0 event_lag"));
}

TEST_F(FaultyHour, NamesAnEngineThatDoesNotSayWhatItRemovesAndNothingElse) {
  EXPECT_THAT(DoubtsWith({.keeps_removals = true}), ElementsAre("0 prediction_drift"));
}

TEST_F(FaultyHour, NamesAnEngineThatComputesOtherTokensAndNothingElse) {
  EXPECT_THAT(DoubtsWith({.other_tokens = true}), ElementsAre("0 tokens_differ"));
}

TEST_F(FaultyHour, NamesAnEngineThatPublishesNothingAndNothingElse) {
  EXPECT_THAT(DoubtsWith({.silent = true}), ElementsAre("0 no_events"));
}

TEST_F(FaultyHour, NamesLostBatchesAndNothingElse) {
  EXPECT_THAT(DoubtsWith({.loses_each = 500}), ElementsAre("0 event_gap"));
}

TEST_F(FaultyHour, NamesCachesThatAreTooSmallToBeOfUseAndNothingElse) {
  options_.engine.num_blocks = kTinyCache;
  const auto doubts = Doubts(PlayWhole(TraceOf({.alike = false}, 1), options_));
  EXPECT_THAT(doubts, testing::Each(EndsWith(" churn")));
  EXPECT_THAT(doubts, SizeIs(kEngines));
}

TEST_F(FaultyHour, NamesEnginesThatDoNotCacheAndNothingElse) {
  options_.engine.prefix_caching = false;
  const auto doubts = DoubtsWith({});
  EXPECT_THAT(doubts, testing::Each(EndsWith(" prefix_caching_off")));
  EXPECT_THAT(doubts, SizeIs(kEngines));
}

// A loss is over when the stream has been whole for a while.
TEST_F(FaultyHour, TrustsAgainAfterEachLoss) {
  options_.router.faults = {{.loses_each = 500}};
  const ReplayReport report = PlayWhole(TraceOf({}, 1), options_);
  const auto doubted = static_cast<size_t>(
      std::ranges::count(report.trust, TrustCause::kEventGap, &VirtualTrust::Change::cause));
  EXPECT_GT(doubted, 1u);
  EXPECT_GE(TimesTrusted(report), kEngines + doubted - 1);
}

}  // namespace
}  // namespace fathom
