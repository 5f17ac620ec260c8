// Engines, their event streams and the index, in virtual time with random faults.
//
// Each seed is a life: engines with small caches serve random prompts, their batches get lost, late
// or repeated, connections break, engines restart, replays fail or come too late. Whenever a rank
// has heard everything its engine published, the index must not claim a block that the engine does
// not hold, and if nothing was lost for good since the engine's first batch it must claim exactly
// what the engine holds. In the end the faults stop, the caches turn over, and every rank must be
// exact.
//
//   FATHOM_SIMULATION_SEED=17      one life, told step by step on failure
//   FATHOM_SIMULATION_SEEDS=100000 so many
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/sanitizers.h"
#include "events/msgpack_dialect.h"
#include "events/rank_feed.h"
#include "events/stream_follower.h"
#include "index/cache_index.h"
#include "mock/engine_core.h"
#include "mock/event_wire.h"
#include "mock/timing_profile.h"

namespace fathom {
namespace {

constexpr uint32_t kBlock = 4;
constexpr int kSteps = 250;
constexpr std::string_view kWires[] = {"0.20", "0.22", "0.24", "0.26", "0.32"};

constexpr uint64_t kSeeds = kSanitized ? 150 : 2000;

struct NoTime final : TimingProfile {
  Duration StepTime(const StepLoad&) const override { return std::chrono::milliseconds(1); }
};

struct Message {
  uint64_t sequence;
  std::string payload;
};

// An engine and its publisher.
class Engine {
 public:
  Engine(Random& random, const TimingProfile& profile)
      : core_({.block_size = kBlock,
               .num_blocks = static_cast<uint32_t>(12 + random.Below(40)),
               .max_num_seqs = 4,
               .max_num_batched_tokens = static_cast<uint32_t>(16 + random.Below(64)),
               .seed = random.Next()},
              profile),
        wire_(*EventWire::Create(MockedEngine::kVllm, kWires[random.Below(std::size(kWires))],
                                 random.Below(2) == 0)),
        buffer_(random.Below(4) == 0 ? 3 + random.Below(10) : 10'000) {}

  EngineCore& core() { return core_; }
  uint64_t published() const { return next_; }
  // The engine tells of a reset with its next step only.
  bool keeps_a_secret() const { return secret_; }
  void Reset() { secret_ = core_.ResetPrefixCache() || secret_; }

  // One step; the batch it published, if any.
  std::optional<Message> Step() {
    if (!core_.Step(step_) || step_.events.empty()) return std::nullopt;
    for (const KvEvent& event : step_.events) {
      if (const auto* stored = std::get_if<BlocksStored>(&event)) Learn(*stored);
    }
    secret_ = false;
    clock_ += 0.001;
    Message message{next_++, wire_.Batch(step_.events, clock_, 0, 0)};
    kept_.push_back(message);
    if (kept_.size() > buffer_) kept_.pop_front();
    return message;
  }
  void Restart() {
    core_.Restart();
    next_ = 0;
    secret_ = false;
    kept_.clear();
  }
  std::vector<Message> Kept(uint64_t from) const {
    std::vector<Message> kept;
    for (const Message& message : kept_) {
      if (message.sequence >= from) kept.push_back(message);
    }
    return kept;
  }
  // Batches that were published but cannot be asked for.
  void Forget(Random& random) {
    if (!kept_.empty())
      kept_.erase(kept_.begin() + static_cast<ptrdiff_t>(random.Below(kept_.size())));
  }

  // A prompt that ends with a block, and how much of it the engine really holds.
  struct Prompt {
    std::vector<TokenId> tokens;
    std::string salt;
    size_t held = 0;  // leading blocks
  };
  // Of every `stride`-th block that was ever stored.
  std::vector<Prompt> Prompts(size_t first, size_t stride) const {
    std::vector<Prompt> prompts;
    size_t i = 0;
    for (const auto& [hash, block] : blocks_) {
      if (i++ % stride == first) prompts.push_back(PromptOf(hash));
    }
    return prompts;
  }
  size_t known_blocks() const { return blocks_.size(); }
  void ForgetPrompts() { blocks_.clear(); }

 private:
  struct Block {
    std::optional<uint64_t> parent;
    std::vector<TokenId> tokens;
    std::string salt;
  };

  void Learn(const BlocksStored& stored) {
    std::optional<uint64_t> parent = stored.parent;
    std::string salt = stored.salt;
    if (parent && blocks_.contains(*parent)) salt = blocks_.at(*parent).salt;
    for (size_t i = 0; i < stored.hashes.size(); ++i) {
      const auto begin = stored.tokens.begin() + static_cast<ptrdiff_t>(i * kBlock);
      blocks_[stored.hashes[i]] = {parent, {begin, begin + kBlock}, salt};
      parent = stored.hashes[i];
    }
  }
  Prompt PromptOf(uint64_t hash) const {
    std::vector<uint64_t> path;
    for (std::optional<uint64_t> at = hash; at; at = blocks_.at(*at).parent) {
      path.push_back(*at);
      if (!blocks_.contains(*at)) return {};
    }
    Prompt prompt;
    prompt.salt = blocks_.at(path.back()).salt;
    bool unbroken = true;
    for (auto it = path.rbegin(); it != path.rend(); ++it) {
      const Block& block = blocks_.at(*it);
      prompt.tokens.insert(prompt.tokens.end(), block.tokens.begin(), block.tokens.end());
      unbroken = unbroken && core_.pool().Find(*it).has_value();
      prompt.held += unbroken ? 1 : 0;
    }
    prompt.tokens.push_back(0);  // the one that is always computed
    return prompt;
  }

  EngineCore core_;
  EventWire wire_;
  const size_t buffer_;
  EngineStep step_;
  uint64_t next_ = 0;
  bool secret_ = false;
  double clock_ = 1'700'000'000;
  std::deque<Message> kept_;
  std::map<uint64_t, Block> blocks_;  // everything that was ever stored, by hash
};

// The router's side of one engine.
class Rank final : private FollowerActions {
 public:
  Rank(CacheIndex& index, Epochs::Seat& seat, FeedBoard& board, uint64_t worker, bool has_replay)
      : worker_(worker),
        feed_(index, seat, std::make_shared<Worker>(WorkerSpec{}, BreakerOptions{}),
              board.Open(WorkerId(worker), 0, "")),
        follower_(*this, has_replay) {}

  StreamFollower& follower() { return follower_; }
  uint64_t worker() const { return worker_; }
  bool exact() const { return exact_; }
  std::optional<uint64_t> TakeQuestion() { return std::exchange(asked_, std::nullopt); }

 private:
  bool Apply(uint64_t sequence, std::string_view payload) override {
    const auto batch = DecodeEventBatch(payload);
    if (!batch || batch->malformed > 0) return false;
    if (sequence == 0) exact_ = true;
    feed_.Apply(*batch, TimePoint{});
    return true;
  }
  void Reset(ResetCause, uint64_t) override {
    feed_.Reset();
    exact_ = false;
  }
  void AskReplay(uint64_t from) override { asked_ = from; }

  const uint64_t worker_;
  RankFeed feed_;
  StreamFollower follower_;
  std::optional<uint64_t> asked_;
  bool exact_ = false;  // nothing was lost since the engine's first batch
};

class Life {
 public:
  explicit Life(uint64_t seed) : seed_(seed), random_(seed) {
    const size_t engines = 1 + random_.Below(3);
    for (size_t i = 0; i < engines; ++i) {
      const bool has_replay = random_.Below(4) != 0;
      Side& side = sides_.emplace_back();
      side.engine = std::make_unique<Engine>(random_, profile_);
      side.rank = std::make_unique<Rank>(index_, seat_, board_, i + 1, has_replay);
    }
    for (double* rate : {&drop_, &break_, &restart_, &fail_, &forget_, &reset_}) {
      *rate = random_.Below(3) == 0 ? 0 : random_.Unit() * 0.05;
    }
  }

  void Run() {
    for (step_ = 0; step_ < kSteps && !testing::Test::HasFailure(); ++step_) {
      for (Side& side : sides_) Turn(side, true);
    }
    for (double* rate : {&drop_, &break_, &restart_, &fail_, &forget_, &reset_}) *rate = 0;
    TurnOver();
    for (Side& side : sides_) {
      const StreamFollower& follower = side.rank->follower();
      Expect(CaughtUp(side), side,
             fmt::format("did not come to rest: away {}, on its way {}, repairing {}, next {}, "
                         "published {}",
                         side.away, side.line.size(), follower.repairing(),
                         follower.next().value_or(0), side.engine->published()));
      Compare(side, true, true);
    }
  }

 private:
  struct Side {
    std::unique_ptr<Engine> engine;
    std::unique_ptr<Rank> rank;
    std::deque<Message> line;         // on its way
    size_t away = 1;                  // turns until the connection is there
    std::optional<size_t> answer_in;  // turns until the replay is answered
    uint64_t question = 0;
  };

  bool Chance(double rate) { return random_.Unit() < rate; }

  // Prompts share beginnings, so that hits, copies and evictions happen.
  EngineRequest MakeRequest(bool fresh) {
    EngineRequest request;
    const TokenId family = fresh ? next_fresh_++ : static_cast<TokenId>(random_.Below(6));
    const size_t length = 1 + random_.Below(7 * kBlock);
    for (size_t i = 0; i < length; ++i) {
      const bool changed = !fresh && i > 2 * kBlock && random_.Below(20) == 0;
      request.prompt.push_back(changed ? static_cast<TokenId>(random_.Below(3))
                                       : family * 1000 + static_cast<TokenId>(i));
    }
    request.max_tokens = static_cast<uint32_t>(1 + random_.Below(6));
    if (!fresh && random_.Below(5) == 0) request.salt = "s" + std::to_string(random_.Below(2));
    return request;
  }

  void Turn(Side& side, bool traffic) {
    Engine& engine = *side.engine;
    if (traffic && random_.Below(2) == 0) (void)engine.core().Submit(MakeRequest(false));
    if (Chance(reset_)) engine.Reset();
    if (Chance(forget_)) engine.Forget(random_);
    if (auto message = engine.Step(); message && side.away == 0 && !Chance(drop_)) {
      side.line.push_back(*std::move(message));
    }
    const bool restarts = Chance(restart_);
    if (restarts) engine.Restart();
    if (restarts || Chance(break_)) Break(side);
    Deliver(side);
    if (random_.Below(4) == 0 && CaughtUp(side)) Compare(side, side.rank->exact(), false);
  }

  void Break(Side& side) {
    side.line.clear();
    side.away = 1 + random_.Below(10);
    if (side.answer_in) side.answer_in = ~size_t{0};  // never
  }

  void Deliver(Side& side) {
    StreamFollower& follower = side.rank->follower();
    if (side.away > 0 && --side.away == 0) follower.Connected();
    Replay(side);
    for (uint64_t n = random_.Below(3); n > 0 && !follower.repairing() && !side.line.empty(); --n) {
      const Message message = std::move(side.line.front());
      side.line.pop_front();
      follower.Live(message.sequence, message.payload);
      Replay(side);
    }
  }

  void Replay(Side& side) {
    StreamFollower& follower = side.rank->follower();
    if (const auto asked = side.rank->TakeQuestion()) {
      side.question = *asked;
      side.answer_in = Chance(fail_) ? ~size_t{0} : random_.Below(4);
    }
    if (!side.answer_in) return;
    if (*side.answer_in == ~size_t{0} || side.away > 0) {
      if (random_.Below(3) != 0) return;
      side.answer_in.reset();
      follower.ReplayFailed();
    } else if (*side.answer_in > 0) {
      --*side.answer_in;
    } else {
      side.answer_in.reset();
      for (const Message& message : side.engine->Kept(side.question)) {
        follower.Replayed(message.sequence, message.payload);
      }
      follower.ReplayEnded();
    }
  }

  bool CaughtUp(const Side& side) const {
    const StreamFollower& follower = side.rank->follower();
    return side.away == 0 && side.line.empty() && !follower.repairing() &&
           !side.engine->keeps_a_secret() &&
           follower.next().value_or(0) == side.engine->published();
  }

  // Until the engine has nothing to do and the router knows it.
  void Rest(Side& side) {
    for (int i = 0; i < 2000; ++i) {
      const EngineCore& core = side.engine->core();
      if (core.running() + core.waiting() == 0 && CaughtUp(side)) return;
      Turn(side, false);
    }
  }

  void TurnOver() {
    for (Side& side : sides_) {
      Rest(side);
      const size_t capacity = side.engine->core().pool().usable_blocks();
      for (size_t blocks = 0; blocks < 3 * capacity; blocks += 3) {
        EngineRequest request = MakeRequest(true);
        request.prompt.resize(3 * kBlock + 1, 7);
        (void)side.engine->core().Submit(request);
        Rest(side);
      }
    }
  }

  void Compare(Side& side, bool exactly, bool everything) {
    // All of them would take too long every time.
    const size_t known = side.engine->known_blocks();
    const size_t stride = everything ? 1 : 1 + known / 4;
    for (const Engine::Prompt& prompt : side.engine->Prompts(random_.Below(stride), stride)) {
      if (prompt.tokens.empty()) continue;
      size_t claimed = 0;
      for (const auto& found : reader_.Match(prompt.tokens, NamespaceSeed("", prompt.salt))) {
        if (found.rank.worker == side.rank->worker()) claimed = found.tokens[0] / kBlock;
      }
      if (exactly) {
        Expect(claimed == prompt.held, side,
               "claims " + std::to_string(claimed) + " blocks of " + std::to_string(prompt.held));
      } else {
        Expect(claimed <= prompt.held, side,
               "claims " + std::to_string(claimed) + " blocks, more than the " +
                   std::to_string(prompt.held) + " held");
      }
    }
    if (known > 400) side.engine->ForgetPrompts();
  }

  void Expect(bool holds, const Side& side, const std::string& what) {
    EXPECT_TRUE(holds) << "seed " << seed_ << ", step " << step_ << ", engine "
                       << side.rank->worker() << ": " << what
                       << "\nagain with FATHOM_SIMULATION_SEED=" << seed_;
  }

  const uint64_t seed_;
  Random random_;
  const NoTime profile_;
  CacheIndex index_{size_t{1} << 30, 1};
  Epochs::Seat seat_{index_.epochs()};
  FeedBoard board_;
  CacheReader reader_{index_};
  std::vector<Side> sides_;
  double drop_ = 0, break_ = 0, restart_ = 0, fail_ = 0, forget_ = 0, reset_ = 0;
  TokenId next_fresh_ = 100;
  int step_ = 0;
};

uint64_t FromEnvironment(const char* name, uint64_t fallback) {
  const char* const text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

TEST(KvSimulation, TheIndexEqualsTheCachesAfterAnyFaults) {
  if (const uint64_t seed = FromEnvironment("FATHOM_SIMULATION_SEED", 0); seed != 0) {
    Life(seed).Run();
    return;
  }
  const uint64_t seeds = FromEnvironment("FATHOM_SIMULATION_SEEDS", kSeeds);
  for (uint64_t seed = 1; seed <= seeds && !HasFailure(); ++seed) Life(seed).Run();
}

}  // namespace
}  // namespace fathom
