#include "lab/mock/event_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/random.h"
#include "base/text.h"
#include "codec/json.h"
#include "lab/mock/block_pool.h"

namespace fathom {
namespace {

constexpr int kPortTries = 50;
// Above those that Linux gives to clients by itself.
constexpr uint64_t kHighPorts = 61000;
constexpr uint64_t kMostHighPorts = 4500;

uint16_t PortOf(std::string_view endpoint) {
  const size_t colon = endpoint.rfind(':');
  if (colon == std::string_view::npos) return 0;
  return static_cast<uint16_t>(ParseDecimal(endpoint.substr(colon + 1)).value_or(0));
}

// An engine's ranks have the ports from the first one's on, also those they dial.
std::string WithPort(std::string_view endpoint, uint64_t port) {
  return fmt::format("{}:{}", endpoint.substr(0, endpoint.rfind(':')), port);
}

// An engine that caches nothing tells nothing.
KvEventOptions EventsOf(const MockOptions& options) {
  KvEventOptions events = options.kv_events;
  events.silent = events.silent || !options.prefix_caching;
  return events;
}

bool EveryNth(uint64_t number, uint64_t n) { return n > 0 && number % n == 0; }

}  // namespace

EventFeed::EventFeed(Loop& loop, const MockOptions& options, const EventWire& wire)
    : loop_(loop), options_(EventsOf(options)), wire_(wire) {}

EventFeed::~EventFeed() = default;

Result<std::unique_ptr<EventFeed>> EventFeed::Create(Loop& loop, const MockOptions& options) {
  const KvEventOptions& events = options.kv_events;
  TRY(const EventWire wire, EventWire::Create(options.engine, events.wire, events.byte_hashes));
  std::unique_ptr<EventFeed> feed(new EventFeed(loop, options, wire));
  const size_t ranks = std::max(options.dp_size, 1u);
  if (wire.polled()) {
    feed->OpenQueues(options);
  } else {
    TRY_VOID(feed->OpenPublishers(ranks));
  }
  for (size_t rank = 0; rank < ranks; ++rank) {
    EventOutlet* outlet = nullptr;
    if (wire.polled()) outlet = feed->queues_[rank].get();
    if (!wire.polled()) outlet = feed->publishers_[rank].get();
    feed->ranks_.push_back(std::make_unique<Rank>(*feed, *outlet));
  }
  return feed;
}

void EventFeed::OpenQueues(const MockOptions& options) {
  const size_t ranks = std::max(options.dp_size, 1u);
  const uint64_t blocks = NumBlocksOf(options) - 1;
  const uint32_t size = options_.restart_block_size;
  const uint64_t later =
      size == 0 ? blocks : BlockPool::BlocksFor(blocks * BlockSizeOf(options), size) - 1;
  for (size_t rank = 0; rank < ranks; ++rank) {
    const auto told = ranks > 1 ? std::optional<size_t>(rank) : std::nullopt;
    queues_.push_back(std::make_unique<EventQueue>(blocks, later, MaxModelLength(options),
                                                   options_.buffer_steps, told));
  }
}

// Free ports are found by trying: the system gives the first rank some, and the next ones may be
// taken. It gives servers every other one, and clients those in between: after some thousand
// connections hardly two in a row are free.
Result<void> EventFeed::OpenPublishers(size_t ranks) {
  const bool any_port = (options_.port == 0 && options_.connect.empty()) ||
                        (options_.replay_port && *options_.replay_port == 0);
  auto opened = OpenConsecutive(ranks);
  Random dice(static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()));
  for (int i = 1; i < kPortTries && !opened && any_port && ranks > 1; ++i) {
    if (2 * ranks < kMostHighPorts) {
      first_port_ = kHighPorts + dice.Next() % (kMostHighPorts - 2 * ranks);
      first_replay_port_ = first_port_ + ranks;
    }
    opened = OpenConsecutive(ranks);
  }
  return opened;
}

Result<void> EventFeed::OpenConsecutive(size_t ranks) {
  publishers_.clear();
  for (size_t rank = 0; rank < ranks; ++rank) {
    auto publisher =
        EventPublisher::Create(context_, loop_, wire_, options_, rank, PlacesFor(rank));
    if (!publisher) return std::unexpected(std::move(publisher).error().In("KV events"));
    publishers_.push_back(*std::move(publisher));
  }
  return {};
}

EventPlaces EventFeed::PlacesFor(size_t rank) const {
  EventPlaces places;
  places.dial = !options_.connect.empty();
  if (places.dial) {
    const uint16_t port = PortOf(options_.connect);
    places.publish = port == 0 ? options_.connect : WithPort(options_.connect, port + rank);
  } else {
    const uint64_t first = options_.port != 0 ? options_.port : first_port_;
    const uint64_t base = rank > 0 ? port(0) : first;
    places.publish = fmt::format("tcp://{}:{}", options_.host, base == 0 ? 0 : base + rank);
  }
  if (options_.replay_port) {
    const uint64_t first = *options_.replay_port != 0 ? *options_.replay_port : first_replay_port_;
    const uint64_t base = rank > 0 ? replay_port(0) : first;
    places.replay = fmt::format("tcp://{}:{}", options_.host, base == 0 ? 0 : base + rank);
  }
  return places;
}

uint16_t EventFeed::port(size_t rank) const { return PortOf(places(rank).publish); }

uint16_t EventFeed::replay_port(size_t rank) const {
  return PortOf(places(rank).replay.value_or(""));
}

void EventFeed::Start() {
  for (const auto& publisher : publishers_) publisher->Start();
}

BatchFate EventFeed::FateOf(uint64_t number) const {
  const bool lost = EveryNth(number, options_.lose_every);
  return {.published = !lost && !EveryNth(number, options_.drop_every), .replayable = !lost};
}

// Without what it keeps to itself.
std::vector<KvEvent> EventFeed::Told(const std::vector<KvEvent>& batch) const {
  std::vector<KvEvent> told = batch;
  if (options_.omission == EventOmission::kRemovals) {
    std::erase_if(told, [](const KvEvent& e) { return std::holds_alternative<BlockRemoved>(e); });
  }
  for (KvEvent& event : told) {
    auto* const stored = std::get_if<BlocksStored>(&event);
    if (stored == nullptr) continue;
    if (options_.omission == EventOmission::kSalt) stored->salt.clear();
    if (options_.omission == EventOmission::kLora) stored->lora.clear();
  }
  return told;
}

bool EventFeed::Publish(size_t index, const std::vector<KvEvent>& events) {
  if (options_.silent) return false;
  std::vector<KvEvent> batch = Told(events);
  if (batch.empty()) return false;
  Rank& rank = *ranks_[index];
  const uint64_t number = ++rank.batches;
  const TimePoint due = loop_.now() + options_.delay;
  rank.late.push_back({due, std::move(batch), FateOf(number), false});
  const bool restarts = number == options_.restart_after;
  if (restarts) rank.late.push_back({due, {}, {}, true});
  Flush(rank);
  return restarts;
}

void EventFeed::Adopt(const MockOptions& options) {
  const KvEventOptions events = EventsOf(options);
  options_.drop_every = events.drop_every;
  options_.lose_every = events.lose_every;
  options_.delay = events.delay;
  options_.silent = events.silent;
  options_.omission = events.omission;
  options_.block_size_label = events.block_size_label;
  for (const auto& rank : ranks_) {
    for (Late& late : rank->late) late.due = std::min(late.due, loop_.now() + options_.delay);
    Flush(*rank);
  }
}

void EventFeed::Flush(Rank& rank) {
  while (!rank.late.empty() && rank.late.front().due <= loop_.now()) {
    const Late next = std::move(rank.late.front());
    rank.late.pop_front();
    if (next.restart) {
      rank.outlet.Restart();
    } else {
      rank.outlet.Add(next.batch, next.fate);
    }
  }
  if (!rank.late.empty()) loop_.timers().Arm(rank, rank.late.front().due);
}

std::string EventFeed::Poll() {
  JsonWriter w;
  w.BeginArray();
  if (!options_.silent) {
    for (const auto& queue : queues_) queue->Drain(w);
  }
  w.EndArray();
  return w.Take();
}

}  // namespace fathom
