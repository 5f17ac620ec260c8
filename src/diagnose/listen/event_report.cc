#include "diagnose/listen/event_report.h"

#include "router/events/msgpack_dialect.h"

namespace fathom {
namespace {

constexpr size_t kMostWatches = 4096;  // whoever invents topics is not followed further

}  // namespace

template <class Change>
void EventReport::Count(const Change& change) {
  change(recent_);
  change(total_);
}

void EventReport::OnMessage(HeardStream& stream, const HeardMessage& message, double now) {
  auto batch = DecodeEventBatch(message.payload);
  if (batch && AlreadyShown(stream, message, *batch)) return;
  OnBytes(message.payload.size());

  EventOrigin origin = stream.origin;
  origin.sequence = message.sequence;
  origin.topic = message.topic;
  origin.replayed = message.replayed;
  origin.time = message.replayed && batch ? batch->timestamp : now;
  if (batch && batch->rank) origin.rank = batch->rank;
  // Without its rank it is not known whose number a shared stream has here.
  if (batch || !stream.shared) Check(stream, origin);

  if (!message.sequence || !batch) {
    ++seen_;
    Count([](EventTally& tally) { ++tally.malformed; });
    const std::string reason =
        message.sequence ? batch.error().what : "no sequence number of 8 bytes";
    print_(view_.Malformed(origin, reason, message.payload.size()));
    return;
  }
  ++seen_;
  Count([&](EventTally& tally) {
    tally.Add(*batch);
    if (!message.replayed && batch->timestamp > 0) tally.AddLag(now - batch->timestamp);
  });
  if (message.replayed) stream.replay_end = {*message.sequence, batch->timestamp};
  print_(view_.Batch(origin, *batch, message.payload.size()));
}

void EventReport::OnPolled(HeardStream& stream, PolledEvent event, double now) {
  EventOrigin origin = stream.origin;
  origin.rank = event.rank;
  origin.sequence = event.id;
  origin.time = now;
  Check(stream, origin);
  ++seen_;
  EventBatch batch;
  batch.rank = event.rank;
  batch.events = std::move(event.events);
  Count([&](EventTally& tally) { tally.Add(batch); });
  print_(view_.Batch(origin, batch, 0));
}

void EventReport::OnMalformed(HeardStream& stream, std::string_view reason, size_t bytes,
                              double now) {
  EventOrigin origin = stream.origin;
  origin.time = now;
  ++seen_;
  Count([](EventTally& tally) { ++tally.malformed; });
  print_(view_.Malformed(origin, reason, bytes));
}

void EventReport::OnBytes(size_t bytes) {
  Count([&](EventTally& tally) { tally.bytes += bytes; });
}

void EventReport::OnConnection(HeardStream& stream, bool up, double now) {
  stream.connected = up;
  EventOrigin origin = stream.origin;
  origin.time = now;
  print_(view_.Connection(origin, up));
}

void EventReport::Check(HeardStream& stream, const EventOrigin& origin) {
  if (!origin.sequence) return;
  // Replies may leave the topic out, and one connection has one publisher: it needs no more.
  std::pair<std::string, uint32_t> key;
  if (stream.shared) key = {origin.topic, origin.rank.value_or(0)};
  if (stream.watches.size() >= kMostWatches && !stream.watches.contains(key)) return;
  const auto [step, from, to] = stream.watches[key].Take(*origin.sequence);
  if (step == SequenceWatch::Step::kGap) {
    const uint64_t first = from;
    const uint64_t last = to;
    Count([&](EventTally& tally) {
      ++tally.gaps;
      tally.missing += last - first + 1;
    });
    print_(view_.Gap(origin, first, last));
  } else if (step == SequenceWatch::Step::kBack) {
    Count([](EventTally& tally) { ++tally.restarts; });
    print_(view_.Restart(origin, from, to));
  }
}

// The live stream was connected before the replay was asked for, so that nothing falls between
// them. A restarted engine counts from 0 again, but its clock goes on.
bool EventReport::AlreadyShown(HeardStream& stream, const HeardMessage& message,
                               const EventBatch& batch) {
  if (message.replayed || !stream.replay_end || !message.sequence) return false;
  const auto [sequence, timestamp] = *stream.replay_end;
  if (*message.sequence <= sequence && batch.timestamp <= timestamp) return true;
  stream.replay_end.reset();
  return false;
}

void EventReport::Summarise(double now) {
  recent_.seconds = now - summarised_;
  print_(view_.Summary(recent_, false));
  recent_ = EventTally();
  summarised_ = now;
}

void EventReport::Conclude(double now) {
  total_.seconds = now - begun_;
  print_(view_.Summary(total_, true));
}

}  // namespace fathom
