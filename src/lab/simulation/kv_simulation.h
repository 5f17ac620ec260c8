// For tests: engines, their event streams and the router's side of them, in virtual time with
// random faults.
//
// A FollowedEngine lives turn by turn: it serves, publishes in its own dialect, restarts, and its
// events get lost, late or repeated on the way into the index. Whoever plays a life decides what it
// is asked, and judges what the index claims whenever CaughtUp().
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "lab/mock/event_queue.h"
#include "lab/mock/event_wire.h"
#include "lab/simulation/kv_simulation_engine.h"
#include "router/events/msgpack_dialect.h"
#include "router/events/rank_feed.h"
#include "router/events/stream_follower.h"
#include "router/events/trtllm_dialect.h"
#include "router/index/cache_index.h"

namespace fathom {

// How often things go wrong, per turn.
struct SimulatedFaults {
  double drop = 0;       // a batch on its way
  double break_off = 0;  // the connection
  double restart = 0;    // the engine
  double fail = 0;       // the answer to a replay or a poll
  double forget = 0;     // a batch that a replay would need
  double reset = 0;      // the cache is emptied

  static SimulatedFaults Some(Random& random) {
    const auto rate = [&] { return random.Below(3) == 0 ? 0 : random.Unit() * 0.05; };
    return {rate(), rate(), rate(), rate(), rate(), rate()};
  }
};

// Where the router keeps what it is told.
struct SimulatedRouter {
  CacheIndex index{size_t{1} << 30, 1};
  Epochs::Seat seat{index.epochs()};
  FeedBoard board;
  CacheReader reader{index};
};

class FollowedEngine {
 public:
  FollowedEngine(SimulatedRouter& router, Random& random, const EngineOptions& options,
                 size_t number)
      : random_(random),
        engine_(options),
        router_(router),
        worker_(std::make_shared<Worker>(
            WorkerSpec{.url = "http://engine-" + std::to_string(number)}, BreakerOptions{})) {}
  virtual ~FollowedEngine() = default;

  SimulatedEngine& engine() { return engine_; }
  const SimulatedEngine& engine() const { return engine_; }
  Worker& worker() { return *worker_; }

  // `sizes` of blocks are those that it may come back with.
  void Turn(const SimulatedFaults& faults, std::span<const uint32_t> sizes) {
    if (Chance(faults.reset) && can_say_cleared()) engine_.Reset();
    if (Chance(faults.forget)) Forget();
    if (const auto& events = engine_.Step(); !events.empty()) Publish(events, Chance(faults.drop));
    const bool restarts = Chance(faults.restart);
    if (restarts) {
      engine_.Restart(random_.Below(2) == 0 ? engine_.block_size()
                                            : sizes[random_.Below(sizes.size())]);
      Restarted();
    }
    if (restarts || Chance(faults.break_off)) Break();
    Deliver(faults);
  }

  // Whether its dialect can say which adapter and salt a block has.
  virtual bool can_say_salt() const = 0;
  // The router has heard of everything that happened.
  virtual bool CaughtUp() const = 0;
  // How far it has come with that, for a failed test to say.
  virtual std::string Whereabouts() const = 0;
  // Nothing was lost since the engine's first word.
  virtual bool exact() const = 0;

  // What is wrong with what the index claims of a prompt of which the engine holds so much; empty
  // if nothing is.
  std::string Complaint(std::span<const TokenId> tokens, std::string_view salt, size_t held,
                        bool exactly) {
    size_t claimed = 0;
    for (const auto& found : router_.reader.Match(tokens, NamespaceSeed("", salt))) {
      if (found.rank.worker != worker_->id().value()) continue;
      if (found.tokens[0] > 0 && found.block_size != engine_.block_size()) {
        return fmt::format("claims blocks of {}, which it has none of", found.block_size);
      }
      claimed = std::max(claimed, found.tokens[0]);
    }
    if (claimed == held || (claimed < held && !exactly)) return {};
    return fmt::format("claims {} tokens where {} are held, in blocks of {}", claimed, held,
                       engine_.block_size());
  }

 protected:
  bool Chance(double rate) { return random_.Unit() < rate; }

  virtual bool can_say_cleared() const { return true; }
  virtual void Publish(const std::vector<KvEvent>& events, bool dropped) = 0;
  virtual void Forget() = 0;
  virtual void Restarted() = 0;
  virtual void Break() = 0;
  virtual void Deliver(const SimulatedFaults& faults) = 0;

  Random& random_;
  SimulatedEngine engine_;
  SimulatedRouter& router_;
  const std::shared_ptr<Worker> worker_;
};

struct StreamMessage {
  uint64_t sequence;
  std::string payload;
};
using StreamMessages = std::deque<StreamMessage>;

// What one router tells another of a rank.
struct ToldSnapshot {
  std::string bytes;
  bool exact = false;
};

// One router's side of a numbered stream.
class StreamSide final : private FollowerActions {
 public:
  StreamSide(SimulatedRouter& router, Random& random, std::shared_ptr<Worker> worker,
             bool has_replay)
      : router_(router), random_(random), worker_(std::move(worker)), has_replay_(has_replay) {
    Begin();
  }

  bool exact() const { return exact_; }
  bool CaughtUp(uint64_t published) const {
    return away_ == 0 && !asks_ && line_.empty() && !follower_->repairing() &&
           follower_->next().value_or(0) == published;
  }
  std::string Whereabouts() const {
    return fmt::format("away {}, on its way {}, repairing {}, next {}", away_, line_.size(),
                       follower_->repairing(), follower_->next().value_or(0));
  }
  // Snapshots that were taken up.
  uint64_t adopted() const { return adopted_; }

  void Send(const StreamMessage& message) {
    if (away_ == 0) line_.push_back(message);
  }
  void Break() {
    line_.clear();
    away_ = 1 + random_.Below(10);
    if (answer_in_) answer_in_ = kNever;
    told_.reset();
  }
  // `kept` is what the engine can replay, `peer` another router that can be asked.
  void Deliver(const SimulatedFaults& faults, const StreamMessages& kept, StreamSide* peer) {
    if (away_ > 0 && --away_ == 0) {
      asks_ ? static_cast<void>(asking_ = 1 + random_.Below(6)) : follower_->Connected();
    }
    if (asks_ && away_ == 0) Ask(peer);
    Replay(faults, kept);
    for (uint64_t n = random_.Below(3); n > 0 && !busy() && !line_.empty(); --n) {
      const StreamMessage message = std::move(line_.front());
      line_.pop_front();
      follower_->Live(message.sequence, message.payload);
      Replay(faults, kept);
    }
  }

  // As a router that starts, and asks another one first.
  void Restart() {
    Break();
    answer_in_.reset();
    asked_.reset();
    Begin();
    asks_ = true;
  }

  // nullopt: it has nothing to tell now.
  std::optional<ToldSnapshot> Tell() {
    const auto mark = away_ == 0 && !asks_ ? follower_->Reflected() : std::nullopt;
    if (!mark || feed_->ExportBytes() == 0) return std::nullopt;
    feed_->BeginExport(*mark);
    std::optional<std::string> bytes;
    while (!bytes) bytes = feed_->ExportSome(1 + random_.Below(20));
    return ToldSnapshot{*std::move(bytes), exact_};
  }

 private:
  static constexpr size_t kNever = ~size_t{0};

  void Begin() {
    FollowerActions& actions = *this;
    follower_.emplace(actions, has_replay_);
    feed_.reset();
    feed_.emplace(router_.index, router_.seat, worker_, router_.board.Open(worker_->id(), 0, ""));
    exact_ = false;
  }
  bool busy() const { return asks_ || follower_->repairing(); }

  // The answer is taken at some time after the question, comes later, or not at all. With a replay
  // it may also be old, of another process, or damaged.
  void Ask(StreamSide* peer) {
    if (peer != nullptr && random_.Below(2) == 0) {
      if (auto told = peer->Tell()) told_ = *std::move(told);
      if (told_ && random_.Below(3) == 0) earlier_.push_back(*told_);
    }
    if (asking_ > 1) {
      --asking_;
      return;
    }
    asks_ = false;
    if (has_replay_ && !earlier_.empty() && random_.Below(3) == 0) {
      told_ = earlier_[random_.Below(earlier_.size())];
    }
    if (told_ && random_.Below(8) == 0) {
      char& byte = told_->bytes[random_.Below(told_->bytes.size())];
      byte = static_cast<char>(byte ^ static_cast<char>(1 + random_.Below(255)));
    }
    offer_.reset();
    auto opened = HoldingSnapshot::Open(told_ ? told_->bytes : std::string());
    if (opened) {
      offer_ = std::make_shared<const HoldingSnapshot>(*std::move(opened));
      follower_->StartFrom(offer_->head().mark);
    }
    follower_->Connected();
  }

  void Replay(const SimulatedFaults& faults, const StreamMessages& kept) {
    if (const auto asked = std::exchange(asked_, std::nullopt)) {
      question_ = *asked;
      answer_in_ = random_.Unit() < faults.fail ? kNever : random_.Below(4);
    }
    if (!answer_in_) return;
    if (*answer_in_ == kNever || away_ > 0) {
      if (random_.Below(3) != 0) return;
      answer_in_.reset();
      follower_->ReplayFailed();
    } else if (*answer_in_ > 0) {
      --*answer_in_;
    } else {
      answer_in_.reset();
      Answer(kept);
    }
  }
  void Answer(const StreamMessages& kept) {
    for (const StreamMessage& message : kept) {
      if (message.sequence >= question_) follower_->Replayed(message.sequence, message.payload);
    }
    follower_->ReplayEnded();
  }

  bool Apply(uint64_t sequence, std::string_view payload) override {
    const auto batch = DecodeEventBatch(payload);
    if (!batch || batch->malformed > 0) return false;
    if (sequence == 0) exact_ = true;
    feed_->Apply(*batch, TimePoint{});
    return true;
  }
  void Reset(ResetCause, uint64_t) override {
    feed_->Reset(TimePoint{});
    exact_ = false;
  }
  void AskReplay(uint64_t from) override { asked_ = from; }
  bool Adopt() override {
    if (!feed_->BeginImport(offer_, TimePoint{})) return false;
    while (feed_->importing()) CHECK(feed_->ImportSome(1 + random_.Below(20)));
    exact_ = told_->exact;
    ++adopted_;
    return true;
  }
  void DropSnapshot() override { offer_.reset(); }

  SimulatedRouter& router_;
  Random& random_;
  const std::shared_ptr<Worker> worker_;
  const bool has_replay_;
  std::optional<StreamFollower> follower_;
  std::optional<RankFeed> feed_;
  bool exact_ = false;
  StreamMessages line_;  // on its way
  size_t away_ = 1;      // turns until the connection is there
  bool asks_ = false;    // another router, before anything else
  size_t asking_ = 0;    // turns until it has answered
  std::optional<ToldSnapshot> told_;
  std::vector<ToldSnapshot> earlier_;
  std::shared_ptr<const HoldingSnapshot> offer_;
  uint64_t adopted_ = 0;
  std::optional<size_t> answer_in_;  // turns until the replay is answered
  uint64_t question_ = 0;
  std::optional<uint64_t> asked_;
};

// By a numbered stream with a replay, perhaps.
class StreamedEngine final : public FollowedEngine {
 public:
  StreamedEngine(SimulatedRouter& router, Random& random, const EngineOptions& options,
                 size_t number, const EventWire& wire, bool salts)
      : FollowedEngine(router, random, options, number),
        wire_(wire),
        salts_(salts),
        buffer_(random.Below(4) == 0 ? 3 + random.Below(10) : 10'000),
        has_replay_(random.Below(4) != 0),
        side_(router, random, worker_, has_replay_) {
    Begin();
  }

  bool can_say_salt() const override { return salts_; }
  bool exact() const override { return side_.exact(); }
  bool CaughtUp() const override { return !engine_.keeps_a_secret() && side_.CaughtUp(next_); }
  std::string Whereabouts() const override {
    return fmt::format("{}, published {}", side_.Whereabouts(), next_);
  }

  // From now on another router follows the engine too, and tells this one what it knows when this
  // one starts again.
  void AddPeer() {
    auto worker = std::make_shared<Worker>(worker_->spec(), BreakerOptions{});
    peer_.emplace(peer_router_.emplace(), random_, std::move(worker), has_replay_);
  }
  void RestartRouter() { side_.Restart(); }
  uint64_t adopted() const { return side_.adopted(); }

 private:
  // --- the engine's side ---

  void Begin() {
    next_ = 0;
    kept_.clear();
    if (wire_.begins_cleared()) Publish({AllBlocksCleared{}}, false);
  }
  void Publish(const std::vector<KvEvent>& events, bool dropped) override {
    clock_ += 0.001;
    const StreamMessage message{next_++, wire_.Batch(events, clock_, 0, 0)};
    kept_.push_back(message);
    if (kept_.size() > buffer_) kept_.pop_front();
    if (!dropped) side_.Send(message);
    if (peer_ && (!dropped || random_.Below(2) == 0)) peer_->Send(message);
  }
  // A batch that was published but cannot be asked for.
  void Forget() override {
    if (kept_.empty()) return;
    kept_.erase(kept_.begin() + static_cast<ptrdiff_t>(random_.Below(kept_.size())));
  }
  void Restarted() override {
    if (peer_) peer_->Break();
    Begin();
  }

  // --- the way ---

  void Break() override { side_.Break(); }
  void Deliver(const SimulatedFaults& faults) override {
    side_.Deliver(faults, kept_, peer_ ? &*peer_ : nullptr);
    if (!peer_) return;
    if (Chance(faults.break_off)) peer_->Break();
    peer_->Deliver(faults, kept_, nullptr);
  }

  const EventWire wire_;
  const bool salts_;
  const size_t buffer_;  // batches kept for replay
  const bool has_replay_;
  uint64_t next_ = 0;
  double clock_ = 1'700'000'000;
  StreamMessages kept_;
  StreamSide side_;
  std::optional<SimulatedRouter> peer_router_;
  std::optional<StreamSide> peer_;
};

// By asking now and then, as TensorRT-LLM wants it: an answer takes the events away, there is no
// replay, and no event says how large blocks are. The rules for gaps are those of PollStream.
class PolledEngine final : public FollowedEngine {
 public:
  PolledEngine(SimulatedRouter& router, Random& random, const EngineOptions& options, size_t number)
      : FollowedEngine(router, random, options, number),
        small_(random.Below(4) == 0),
        feed_(router.index, router.seat, worker_, router.board.Open(worker_->id(), 0, "")) {
    Begin();
  }

  bool can_say_salt() const override { return false; }
  bool exact() const override { return exact_; }
  bool CaughtUp() const override {
    return away_ == 0 && !unheard_ && decoder_.held(0) == 0 && next_.value_or(0) == published_;
  }
  std::string Whereabouts() const override {
    return fmt::format("away {}, held back {}, next {}, published {}", away_, decoder_.held(0),
                       next_.value_or(0), published_);
  }

 private:
  static constexpr uint64_t kWindow = 1 << 20;
  static constexpr size_t kAmple = 1 << 20;

  void Begin() {
    const size_t blocks = engine_.core().pool().usable_blocks();
    // One request must fit, or the router would never hear of a whole one.
    const size_t buffer = small_ ? 2 * blocks + random_.Below(20) : kAmple;
    queue_.emplace(blocks, blocks, kWindow, buffer, std::nullopt);
    published_ = 1;
    unheard_ = true;
  }
  bool can_say_cleared() const override { return false; }
  void Publish(const std::vector<KvEvent>& events, bool dropped) override {
    queue_->Add(events, {.published = !dropped || unheard_});
    published_ += events.size();
  }
  void Forget() override {}
  // Ids alone tell a new process from the old one, so they must be heard from its first one on: if
  // that was lost and the next happened to continue the old ids, nobody could know.
  void Restarted() override {
    Begin();
    if (small_) Poll(false);
  }
  void Break() override { away_ = 1 + random_.Below(10); }
  void Deliver(const SimulatedFaults& faults) override {
    if (away_ > 0 && --away_ > 0) return;
    if (random_.Below(2) == 0) Poll(Chance(faults.fail) && !unheard_);
  }

  void Poll(bool lost) {
    JsonWriter answer;
    answer.BeginArray();
    queue_->Drain(answer);
    answer.EndArray();
    if (lost) return;
    unheard_ = false;
    const auto events = decoder_.Decode(answer.Take());
    for (const PolledEvent& event : *events) Apply(event);
  }
  void Apply(const PolledEvent& event) {
    if (next_ && event.id != *next_) {
      feed_.Reset(TimePoint{});
      exact_ = false;
    }
    if (event.id == 0) exact_ = true;
    next_ = event.id + 1;
    feed_.Apply(event.events, TimePoint{});
  }

  const bool small_;  // the buffer of events that wait to be fetched
  RankFeed feed_;
  bool exact_ = false;
  std::optional<EventQueue> queue_;
  uint64_t published_ = 1;  // the one of the process's birth
  bool unheard_ = true;     // the process has not been heard of
  size_t away_ = 1;
  TrtllmDecoder decoder_;
  std::optional<uint64_t> next_;
};

inline uint64_t NumberFromEnvironment(const char* name, uint64_t fallback) {
  const char* const text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

}  // namespace fathom
