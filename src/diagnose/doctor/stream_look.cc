#include "diagnose/doctor/stream_look.h"

#include <algorithm>
#include <chrono>

#include "base/peer_text.h"
#include "io/zmtp/zmtp_client.h"
#include "router/events/msgpack_dialect.h"

namespace fathom {
namespace {

constexpr size_t kLargestMessage = size_t{256} << 20;
constexpr size_t kSequenceBytes = 8;
constexpr Duration kPollPause = std::chrono::milliseconds(500);

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

StreamTally::StreamTally(EventSource source, uint64_t vocabulary) : vocabulary_(vocabulary) {
  look_.source = std::move(source);
}

// [topic][sequence][payload]
void StreamTally::TakeMessage(const ZmqMessage& message, double now) {
  ++look_.batches;
  for (const std::string& frame : message) look_.bytes += frame.size();
  if (message.size() < 2) return Malformed("a message with one frame");
  TakeSequence(message[message.size() - 2]);
  const auto batch = DecodeEventBatch(message.back());
  if (!batch) return Malformed(batch.error().what);
  if (batch->malformed > 0) Malformed(batch->first_problem, batch->malformed);
  if (batch->timestamp > 0) TakeLag(now - batch->timestamp);
  for (const CacheEvent& event : batch->events) Apply(event);
}

void StreamTally::TakePoll(std::string_view body) {
  look_.listened = true;
  look_.connected = true;
  look_.bytes += body.size();
  const uint64_t before = decoder_.counters().malformed;
  const auto events = decoder_.Decode(body);
  if (!events) return Malformed(events.error().what);
  const auto& counters = decoder_.counters();
  if (counters.malformed > before) Malformed(counters.first_problem, counters.malformed - before);
  look_.restarts = counters.restarts;
  look_.batches += events->size();
  for (const PolledEvent& polled : *events) {
    for (const CacheEvent& event : polled.events) Apply(event);
  }
}

void StreamTally::Malformed(std::string_view problem, uint64_t times) {
  if (look_.malformed == 0) look_.first_problem = Shown(problem);
  look_.malformed += times;
}

void StreamTally::TakeSequence(std::string_view frame) {
  if (frame.size() != kSequenceBytes) return Malformed("a message without a sequence number");
  uint64_t sequence = 0;
  for (const char c : frame) sequence = sequence << 8 | static_cast<unsigned char>(c);
  const auto last = std::exchange(last_sequence_, sequence);
  if (!last || sequence - *last == 1) return;
  if (sequence > *last) {
    ++look_.gaps;
    look_.missing_batches += sequence - *last - 1;
    return;
  }
  ++look_.restarts;
  blocks_.clear();
}

void StreamTally::TakeLag(double lag) {
  if (!look_.largest_lag || lag > *look_.largest_lag) look_.largest_lag = lag;
  if (lags_.size() < kLags) {
    lags_.push_back(lag);
    return;
  }
  lags_[next_lag_] = lag;
  next_lag_ = (next_lag_ + 1) % kLags;
}

void StreamTally::Apply(const CacheEvent& event) {
  if (const auto* stored = std::get_if<StoredEvent>(&event)) return Apply(*stored);
  if (const auto* removed = std::get_if<RemovedEvent>(&event)) return Apply(*removed);
  if (std::holds_alternative<MovedEvent>(event)) {
    ++look_.moved_blocks;
    return;
  }
  ++look_.clears;
  ++era_;
}

void StreamTally::Apply(const StoredEvent& event) {
  ++look_.stored_events;
  look_.stored_blocks += event.hashes.size();
  if (look_.block_sizes.size() < kMaxSizes) look_.block_sizes.insert(event.block_size);
  CountTokens(event);
  JudgeParent(event);
  for (const uint64_t hash : event.hashes) Hold(hash);
}

void StreamTally::Apply(const RemovedEvent& event) {
  look_.removed_blocks += event.hashes.size();
  for (const uint64_t hash : event.hashes) {
    // Also what was stored before we came: its children to come are orphans all the same.
    if (blocks_.size() >= kMaxHashes && !blocks_.contains(hash)) {
      look_.forgot = true;
      continue;
    }
    Copies& copies = blocks_[hash];
    if (copies.era != era_) copies = {.held = 0, .era = era_};
    if (copies.held > 0) --copies.held;
  }
}

void StreamTally::JudgeParent(const StoredEvent& event) {
  if (!event.parent) {
    ++look_.parents_known;
    return;
  }
  const auto parent = blocks_.find(*event.parent);
  if (parent != blocks_.end()) {
    const bool held = parent->second.era == era_ && parent->second.held > 0;
    ++(held ? look_.parents_known : look_.parents_removed);
  } else if (!look_.forgot) {
    ++look_.parents_before;
  }
}

void StreamTally::CountTokens(const StoredEvent& event) {
  look_.tokens += event.tokens.size();
  for (const TokenId token : event.tokens) {
    look_.largest_token = std::max<uint64_t>(look_.largest_token, token);
    if (vocabulary_ > 0 && token >= vocabulary_) ++look_.foreign_tokens;
  }
}

void StreamTally::Hold(uint64_t hash) {
  if (blocks_.size() >= kMaxHashes && !blocks_.contains(hash)) {
    look_.forgot = true;
    return;
  }
  Copies& copies = blocks_[hash];
  if (copies.era != era_) copies = {.held = 0, .era = era_};
  ++copies.held;
}

StreamLook StreamTally::Conclude(double seconds) {
  look_.seconds = seconds;
  if (!lags_.empty()) {
    const auto middle = lags_.begin() + static_cast<ptrdiff_t>(lags_.size() / 2);
    std::ranges::nth_element(lags_, middle);
    look_.median_lag = *middle;
  }
  return std::move(look_);
}

Task<StreamLook> ListenTo(Loop& loop, Resolver& resolver, EventSource source, uint64_t vocabulary,
                          TimePoint until) {
  const TimePoint begun = loop.now();
  StreamTally tally(source, vocabulary);
  if (source.dials_out) {
    tally.GiveUp(fmt::format(
        "rank {} connects to {} instead of binding, so a subscriber cannot connect to it",
        source.rank, Shown(source.endpoint)));
    co_return tally.Conclude(0);
  }
  ByteBudget memory(kLargestMessage);
  auto client = ZmtpClient::Create(loop, resolver, memory, source.endpoint,
                                   {.topic = source.topic, .limits = {.message = kLargestMessage}});
  if (!client) {
    tally.GiveUp(Shown(client.error().what));
    co_return tally.Conclude(0);
  }
  tally.Listen();
  while (loop.now() < until) {
    auto waiting = (*client)->Next(until);
    const ZmtpNews news = co_await waiting;
    if (news == ZmtpNews::kConnected) tally.Connected();
    if (news == ZmtpNews::kMessage) tally.TakeMessage((*client)->message(), WallSeconds());
  }
  co_return tally.Conclude(Seconds(loop.now() - begun));
}

Task<StreamLook> PollUntil(ReadOnlyClient& client, uint64_t vocabulary, TimePoint until) {
  Loop& loop = client.loop();
  const TimePoint begun = loop.now();
  EventSource source;
  source.endpoint = client.url() + "/kv_cache_events";
  StreamTally tally(std::move(source), vocabulary);
  while (loop.now() < until) {
    auto polling = client.Ask("/kv_cache_events", "");
    const auto answer = co_await polling;
    if (std::string why = WhyNot(answer, "--worker-api-key"); !why.empty()) {
      tally.GiveUp(std::move(why));
      break;
    }
    tally.TakePoll(answer->body);
    co_await loop.Sleep(kPollPause);
  }
  StreamLook look = tally.Conclude(Seconds(loop.now() - begun));
  look.polled = true;
  co_return std::move(look);
}

}  // namespace fathom
