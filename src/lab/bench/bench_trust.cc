#include "lab/bench/bench_trust.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "base/exit_status.h"
#include "base/random.h"
#include "codec/json.h"
#include "lab/bench/bench_settings.h"
#include "lab/bench/median.h"
#include "router/fleet/fleet.h"
#include "router/routing/reservation.h"
#include "router/routing/testimony.h"

namespace fathom {
namespace {

constexpr std::string_view kTrustUsage =
    "usage: fathom bench trust [ranks=8] [block-size=16] [news=256] [memory-mib=64] [runs=4000]\n"
    "The same requests through the same decisions, once with everything that watches ranks and "
    "once\n"
    "without, in turn. Of a warm prompt each rank holds a part, one all but the last `news` "
    "tokens,\n"
    "which are others each time; a cold one is new from its first token on.\n";

constexpr uint64_t kWatchTurn = 20;  // requests of one side before it is the other's turn

struct TrustBenchPlan {
  uint64_t ranks = 8;
  uint64_t block_size = 16;
  uint64_t news = 256;
  uint64_t memory = 64;  // MiB
  uint64_t runs = 4000;
};

struct Prompt {
  std::string_view name;
  uint64_t tokens;
  bool warm;
};
constexpr Prompt kPrompts[] = {
    {"cold 4k", 4096, false}, {"warm 4k", 4096, true}, {"warm 32k", 32768, true}};

void Renew(std::span<TokenId> tokens, Random& random) {
  for (TokenId& token : tokens) token = static_cast<TokenId>(random.Below(128'000));
}

struct WatchTimes {
  std::vector<Duration> until_sent;  // from the question
  std::vector<Duration> whole;       // with what follows the first and the last byte
};

// A fleet, and one request after the other.
class WatchedFleet {
 public:
  WatchedFleet(const TrustBenchPlan& plan, const Prompt& prompt, bool watched)
      : plan_(plan),
        watched_(watched),
        index_(size_t{4} << 30, 1, watched ? size_t{plan.memory} << 20 : 0),
        tokens_(prompt.tokens),
        fresh_(prompt.warm ? prompt.tokens - std::min(plan.news, prompt.tokens) : 0) {
    Renew(tokens_, random_);
    std::vector<Member> members;
    for (uint64_t i = 0; i < plan.ranks; ++i) {
      AddRank(i);
      members.push_back(
          {.worker = workers_.back(), .state = WorkerState::kReady, .any_model = true});
    }
    fleet_ = std::make_shared<FleetSnapshot>(std::move(members));
    if (watched) FillLost();
  }

  void Turn() {
    for (uint64_t i = 0; i < kWatchTurn; ++i) Once();
  }
  const WatchTimes& times() const { return times_; }
  // Every choice knew what it should.
  bool right() const { return right_; }

 private:
  static TimePoint Now() { return std::chrono::steady_clock::now(); }

  // The first holds all that is not fresh, the last an eighth or so.
  void AddRank(uint64_t number) {
    workers_.push_back(std::make_shared<Worker>(
        WorkerSpec{.url = fmt::format("http://worker-{}", number)}, BreakerOptions{}));
    places_.push_back({workers_.back().get(), &workers_.back()->ranks.only()});
    const BlockShape shape{.size = static_cast<uint32_t>(plan_.block_size)};
    holdings_.push_back(index_.Open(places_.back().label(), shape, seat_));
    const size_t blocks = shape.BlocksIn(fresh_) * (plan_.ranks - number) / plan_.ranks;
    if (blocks == 0) return;
    deepest_ = std::max(deepest_, blocks * plan_.block_size);
    const auto held = std::span(tokens_).first(blocks * plan_.block_size);
    std::vector<uint64_t> keys;
    KeyChain(held, shape, kKeySeed, keys).All();
    keys.resize(blocks);
    holdings_.back()->Store({.hashes = keys, .tokens = held}, Now());
  }

  // In a router that has run for a while the table is full, and all of its pages are there.
  void FillLost() {
    const uint64_t places = (plan_.memory << 20) / 16;
    for (uint64_t i = 0; i < places; ++i) index_.lost()->Add(random_.Next(), LostHow::kEvicted, 1);
  }

  void Once() {
    Renew(std::span(tokens_).subspan(fresh_), random_);
    const TimePoint begun = Now();
    const RouteQuestion question{.tokens = tokens_, .seed = kKeySeed, .weights = {}};
    const auto choice = steering_.Decide(question, places_, begun, Steering::Patience::kMayWait);
    Reservation booked(steering_, choice, question, Reservation::Answer::kStreamed, begun);
    const uint32_t cached = choice.decision->cached_tokens();
    std::optional<Testimony> testimony;
    if (watched_) {
      const Testimony::About about{.fleet = *fleet_, .exact = true, .comparable = true};
      testimony.emplace(index_.lost(), steering_, choice, question, about, begun);
    }
    const TimePoint sent = Now();
    booked.FirstByte(begun);
    if (testimony) testimony->FirstByte(begun);
    booked.Release(begun);
    if (testimony) testimony->End(cached, begun);
    times_.whole.push_back(Now() - begun);
    times_.until_sent.push_back(sent - begun);
    right_ = right_ && cached == deepest_;
  }

  const TrustBenchPlan plan_;
  const bool watched_;
  CacheIndex index_;
  Random random_{1};
  std::vector<TokenId> tokens_;
  const size_t fresh_;  // where the tokens begin that are new each time
  Epochs::Seat seat_{index_.epochs()};
  std::vector<std::shared_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<RankHoldings>> holdings_;
  std::vector<Place> places_;
  std::shared_ptr<const FleetSnapshot> fleet_;
  SteeringWorld world_{SteeringOptions{}, 1};
  Steering steering_{world_, DepthsOf(&index_), 1};
  size_t deepest_ = 0;  // tokens
  WatchTimes times_;
  bool right_ = true;
};

void WriteWatchTimes(JsonWriter& w, std::string_view name, const std::vector<Duration>& on,
                     const std::vector<Duration>& off) {
  const double with = MedianMicroseconds(on);
  const double without = MedianMicroseconds(off);
  w.Key(name).BeginObject().Key("on_us").Number(with).Key("off_us").Number(without);
  w.Key("added_us").Number(with - without).Key("times").Number(with / without).EndObject();
}

// False: a choice was wrong.
bool MeasureTrust(const TrustBenchPlan& plan, const Prompt& prompt, JsonWriter& w) {
  WatchedFleet on(plan, prompt, true);
  WatchedFleet off(plan, prompt, false);
  for (uint64_t run = 0; run < plan.runs; run += kWatchTurn) {
    on.Turn();
    off.Turn();
  }
  w.BeginObject().Key("prompt").String(prompt.name);
  WriteWatchTimes(w, "until_sent", on.times().until_sent, off.times().until_sent);
  WriteWatchTimes(w, "whole", on.times().whole, off.times().whole);
  w.EndObject();
  return on.right() && off.right();
}

}  // namespace

int RunBenchTrust(std::span<const std::string_view> args) {
  TrustBenchPlan plan;
  constexpr double kMost = 1 << 24;
  const BenchSetting settings[] = {{"ranks", &plan.ranks, 1, 4096},
                                   {"block-size", &plan.block_size, 1, 1024},
                                   {"news", &plan.news, 1, kMost},
                                   {"memory-mib", &plan.memory, 1, 65536},
                                   {"runs", &plan.runs, 1, kMost}};
  if (const auto set = ReadSettings(args, settings); !set) {
    return RefuseBench(set.error().what, kTrustUsage);
  }
  JsonWriter w;
  w.BeginObject().Key("ranks").Unsigned(plan.ranks).Key("prompts").BeginArray();
  bool right = true;
  for (const Prompt& prompt : kPrompts) right = MeasureTrust(plan, prompt, w) && right;
  w.EndArray().EndObject();
  if (!right) {
    fmt::print(stderr, "fathom bench: a choice was wrong\n");
    return kExitFailed;
  }
  fmt::print("{}\n", w.Take());
  return kExitFine;
}

}  // namespace fathom
