#include "router/events/msgpack_dialect.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "router/events/msgpack_event.h"

namespace fathom {
namespace {

std::unexpected<Error> Wrong(const MsgpackReader& in, std::string_view what) {
  if (in.failed()) return Fail(Blame::kPeer, "KV events: the message {}", in.problem());
  return Fail(Blame::kPeer, "KV events: {}", what);
}

void CountMalformed(EventBatch& batch, uint32_t number, std::string_view problem) {
  if (batch.malformed++ == 0) batch.first_problem = fmt::format("event {}: {}", number, problem);
}

std::string TooManyBytes(size_t bytes) {
  return fmt::format("{} bytes, more than {}", bytes, kMaxEventBytes);
}

// The next event of a batch. nullopt: it is left out, and counted.
Result<std::optional<CacheEvent>> TakeNext(MsgpackReader& in, uint32_t number, EventBatch& batch) {
  const MsgpackReader before = in;
  Result<std::optional<CacheEvent>> event = TakeEvent(in);
  const bool past = event && *event && !std::holds_alternative<ClearedEvent>(**event);
  if (!past) {
    in = before;
    if (!in.Skip()) return Wrong(in, "");
  }
  const size_t bytes = in.position() - before.position();
  if (event && bytes <= kMaxEventBytes) {
    batch.ignored += *event ? 0 : 1;
    return event;
  }
  CountMalformed(batch, number, bytes > kMaxEventBytes ? TooManyBytes(bytes) : event.error().what);
  return std::nullopt;
}

Result<uint32_t> TakeCount(MsgpackReader& in) {
  const auto count = in.TakeArray();
  if (!count) return Wrong(in, "events: not a list");
  if (*count > kMaxEventsPerBatch)
    return Fail(Blame::kPeer, "KV events: events: {}, more than {}", *count, kMaxEventsPerBatch);
  return *count;
}

Result<> TakeEvents(MsgpackReader& in, EventBatch& batch) {
  TRY(const uint32_t count, TakeCount(in));
  for (uint32_t i = 0; i < count; ++i) {
    TRY(auto event, TakeNext(in, i, batch));
    if (event) batch.events.push_back(*std::move(event));
  }
  return {};
}

Result<double> TakeTimestamp(MsgpackReader& in) {
  if (const auto seconds = in.TakeFloat()) return *seconds;
  if (const auto seconds = in.TakeUnsigned()) return static_cast<double>(*seconds);
  return Wrong(in, "timestamp: not a number");
}

Result<std::optional<uint32_t>> TakeRank(MsgpackReader& in) {
  if (in.TakeNil()) return std::nullopt;
  const auto rank = in.TakeUnsigned();
  if (!rank || *rank > std::numeric_limits<uint32_t>::max())
    return Wrong(in, "rank: not a number of 32 bits");
  return static_cast<uint32_t>(*rank);
}

Result<uint32_t> TakeEnvelope(MsgpackReader& in, EventBatch& batch) {
  const auto elements = in.TakeArray();
  if (!elements || *elements < 2) return Wrong(in, "not an array of timestamp, events and rank");
  TRY(batch.timestamp, TakeTimestamp(in));
  return *elements;
}

// What follows the events.
Result<> TakeEnd(MsgpackReader& in, uint32_t elements, EventBatch& batch) {
  if (elements > 2) {
    TRY(batch.rank, TakeRank(in));
  }
  for (uint32_t i = 3; i < elements; ++i)
    if (!in.Skip()) return Wrong(in, "");
  if (in.left() > 0) return Fail(Blame::kPeer, "KV events: {} bytes after the batch", in.left());
  return {};
}

}  // namespace

Result<EventBatch> DecodeEventBatch(std::string_view payload) {
  MsgpackReader in(payload);
  EventBatch batch;
  TRY(const uint32_t elements, TakeEnvelope(in, batch));
  TRY_VOID(TakeEvents(in, batch));
  TRY_VOID(TakeEnd(in, elements, batch));
  return batch;
}

Result<> EventBatchReader::Begin() {
  begun_ = true;
  TRY(elements_, TakeEnvelope(in_, head_));
  TRY(count_, TakeCount(in_));
  events_ = in_;
  event_begin_ = in_.position();
  return {};
}

Result<bool> EventBatchReader::Check(size_t bytes) {
  if (!begun_) TRY_VOID(Begin());
  TRY(const bool passed, CheckEvents(bytes));
  if (!passed) return false;
  TRY_VOID(TakeEnd(in_, elements_, head_));
  return true;
}

Result<bool> EventBatchReader::CheckEvents(size_t bytes) {
  const size_t until = in_.position() + bytes;
  while (checked_ < count_) {
    if (in_.position() >= until) return false;
    if (!in_.SkipSome(pending_, until - in_.position())) return Wrong(in_, "");
    if (pending_ == 0) Passed();
  }
  return true;
}

void EventBatchReader::Passed() {
  if (in_.position() - event_begin_ > kMaxEventBytes) too_large_.push_back({checked_, in_});
  event_begin_ = in_.position();
  pending_ = 1;
  ++checked_;
}

bool EventBatchReader::NextIsTooLarge() const {
  return skipped_ < too_large_.size() && too_large_[skipped_].number == next_;
}

bool EventBatchReader::Next(std::optional<CacheEvent>& event) {
  event.reset();
  if (next_ == count_) return false;
  if (NextIsTooLarge()) {
    const MsgpackReader& after = too_large_[skipped_++].after;
    CountMalformed(head_, next_, TooManyBytes(after.position() - events_.position()));
    events_ = after;
  } else if (auto taken = TakeNext(events_, next_, head_)) {  // Check() has passed: always
    event = *std::move(taken);
  }
  ++next_;
  return true;
}

}  // namespace fathom
