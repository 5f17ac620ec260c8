#include "events/followed_rank.h"

#include <fmt/format.h>

#include "events/msgpack_dialect.h"

namespace fathom {
namespace {

constexpr Duration kQuiet = std::chrono::seconds(10);

std::string BigEndian(uint64_t value) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (56 - 8 * i));
  return bytes;
}

}  // namespace

std::optional<NumberedPayload> ReadNumbered(const ZmqMessage& message) {
  if (message.size() < 2 || message.truncated()) return std::nullopt;
  const std::string& number = message[message.size() - 2];
  if (number.size() != 8) return std::nullopt;
  uint64_t sequence = 0;
  for (const char byte : number) sequence = sequence << 8 | static_cast<uint8_t>(byte);
  return NumberedPayload{sequence, message.back()};
}

FollowedRank::FollowedRank(IntakeContext& context, const StreamOwner& owner, uint32_t rank,
                           std::string source, std::string replay)
    : context_(context),
      owner_(owner),
      replay_(std::move(replay)),
      feed_(context.index, context.seat, owner.worker,
            context.board.Open(owner.worker->id(), rank, std::move(source)), &context.sizes),
      follower_(*this, !replay_.empty()) {
  feed_.WatchLag(context.board.lag_after_first_byte);
}

void FollowedRank::Following(void (StreamFollower::*step)()) {
  (follower_.*step)();
  CopyCounts();
}

void FollowedRank::Message(const ZmqMessage& message) {
  const auto batch = ReadNumbered(message);
  if (!batch || message.size() < 3) {
    status().stray_messages.Add(1);
    Complain("A message is no KV event batch",
             fmt::format("{} frames instead of topic, sequence and payload", message.size()),
             "check that the endpoint is an engine's KV event publisher");
    return;
  }
  Live(*batch);
}

void FollowedRank::Live(const NumberedPayload& batch) {
  live_ = true;
  follower_.Live(batch.sequence, batch.payload);
  live_ = false;
  CopyCounts();
}

bool FollowedRank::Apply(uint64_t sequence, std::string_view payload) {
  const auto batch = DecodeEventBatch(payload);
  if (!batch) {
    Complain("A KV event batch could not be read", batch.error().what,
             "check that the engine's release is one that Fathom knows; `fathom listen` shows what "
             "it sends");
    return false;
  }
  if (batch->malformed > 0) {
    Complain("A KV event made no sense and was left out", batch->first_problem,
             "`fathom listen` shows what the engine sends");
  }
  if (live_ && batch->timestamp > 0) Stamp(batch->timestamp);
  feed_.Apply(*batch, context_.loop.now());
  status().last_sequence.store(static_cast<int64_t>(sequence), std::memory_order_relaxed);
  return true;
}

// How old the batch is, by the engine's clock.
void FollowedRank::Stamp(double timestamp) {
  using FloatSeconds = std::chrono::duration<double>;
  const FloatSeconds offset =
      std::chrono::system_clock::now().time_since_epoch() - FloatSeconds(timestamp);
  constexpr FloatSeconds kAbsurd(1e6);
  if (!(std::chrono::abs(offset) < kAbsurd)) return;
  const auto lag = feed_.Stamped(std::chrono::duration_cast<Duration>(offset), context_.loop.now());
  if (lag) context_.board.lag_by_timestamp.Observe(*lag);
}

void FollowedRank::Reset(ResetCause cause, uint64_t /*lost*/) {
  const bool another = cause == ResetCause::kRestart || cause == ResetCause::kReconnect;
  feed_.Reset(context_.loop.now(),
              another ? RankFeed::Process::kPerhapsAnother : RankFeed::Process::kSame);
  status().last_sequence.store(-1, std::memory_order_relaxed);
  switch (cause) {
    case ResetCause::kRestart:
      return SayRestarted();
    case ResetCause::kLostBatches:
      return;  // the rank is doubted for it, and that is said
    case ResetCause::kReconnect:
      return Complain(
          "The KV event connection broke; whether it is the same process cannot be told, so what "
          "it held is forgotten",
          replay_.empty() ? "no replay endpoint" : "the replay endpoint does not answer",
          "give the engine a replay_endpoint that the router can reach");
    case ResetCause::kMalformed:
      return;  // said by Apply()
  }
}

// How often it was not said since it was said last; nothing if it must not be said now.
std::optional<uint64_t> FollowedRank::MaySay(std::string_view what) {
  const TimePoint now = context_.loop.now();
  Quiet& quiet = quiet_[what];
  if (now < quiet.until) {
    ++quiet.unsaid;
    return std::nullopt;
  }
  quiet.until = now + kQuiet;
  return std::exchange(quiet.unsaid, 0);
}

void FollowedRank::SayRestarted() {
  constexpr std::string_view kWhat = "The engine was restarted; what it held is forgotten";
  const auto before = MaySay(kWhat);
  if (!before) return;
  context_.log.Info(kWhat, {{"worker_id", owner_.worker->id().value()},
                            {"url", owner_.worker->spec().url},
                            {"dp_rank", status().dp_rank.load(std::memory_order_relaxed)},
                            {"similar_before", *before}});
}

void FollowedRank::Complain(std::string_view what, std::string_view detail, std::string_view fix) {
  const auto before = MaySay(what);
  if (!before) return;
  context_.log.Warn(what, {{"worker_id", owner_.worker->id().value()},
                           {"url", owner_.worker->spec().url},
                           {"dp_rank", status().dp_rank.load(std::memory_order_relaxed)},
                           {"detail", detail},
                           {"fix", fix},
                           {"similar_before", *before}});
}

void FollowedRank::CopyCounts() {
  const StreamFollower::Counts& counts = follower_.counts();
  FeedStatus& s = status();
  s.batches.Set(counts.batches);
  s.gaps.Set(counts.gaps);
  s.repaired_batches.Set(counts.repaired);
  s.lost_batches.Set(counts.lost);
  s.duplicate_batches.Set(counts.duplicates);
  s.malformed_batches.Set(counts.malformed);
  s.restarts.Set(counts.restarts);
  s.reconnects.Set(counts.reconnects);
  s.replays.Set(counts.replays);
  s.replay_failures.Set(counts.replay_failures);
}

void FollowedRank::Stop() {
  stopped_ = true;
  if (replaying_ != nullptr) replaying_->Cancel();
}

Task<void> FollowedRank::Repair() {
  while (follower_.repairing() && !stopped_) {
    auto opened =
        ZmqSocket::Open(context_.zmq, context_.loop, ZmqType::kDealer, context_.SocketOptions());
    bool asked = false;
    if (opened) {
      ZmqSocket& socket = **opened;
      const auto connected = socket.Connect(replay_);
      const std::string from = BigEndian(replay_from_);
      const ZmqMessage question{std::string_view(), from};
      asked = connected && socket.Send(question);
    }
    bool complete = false;
    if (asked) {
      replaying_ = opened->get();
      auto receiving = ReceiveReplay(**opened);
      complete = co_await receiving;
      replaying_ = nullptr;
    }
    if (stopped_) co_return;
    Following(complete ? &StreamFollower::ReplayEnded : &StreamFollower::ReplayFailed);
  }
}

// False: it did not come to its end in time.
Task<bool> FollowedRank::ReceiveReplay(ZmqSocket& socket) {
  ZmqMessage message;
  while (!stopped_) {
    const TimePoint deadline = context_.loop.now() + context_.options.replay_timeout;
    const IoStatus received = co_await socket.Receive(message, deadline);
    if (received != IoStatus::kOk) co_return false;
    const auto batch = ReadNumbered(message);
    if (!batch) {
      status().stray_messages.Add(1);
      continue;
    }
    if (batch->sequence == kEndOfReplay && batch->payload.empty()) co_return true;
    follower_.Replayed(batch->sequence, batch->payload);
    CopyCounts();
  }
  co_return false;
}

}  // namespace fathom
