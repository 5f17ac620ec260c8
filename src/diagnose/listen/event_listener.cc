#include "diagnose/listen/event_listener.h"

#include <algorithm>

#include "base/exit_status.h"

namespace fathom {
namespace {

constexpr Duration kPollPause = std::chrono::milliseconds(500);
constexpr Duration kReplayPatience = std::chrono::seconds(5);
constexpr size_t kLargestMessage = size_t{256} << 20;
constexpr size_t kMemory = size_t{1} << 30;  // of all streams
constexpr ZmtpLimits kLimits{.frames = 1024, .message = kLargestMessage, .command = 4096};
constexpr size_t kSequenceBytes = 8;
constexpr uint64_t kReplayOver = ~uint64_t{0};

std::optional<uint64_t> ReadSequence(std::string_view frame) {
  if (frame.size() != kSequenceBytes) return std::nullopt;
  uint64_t value = 0;
  for (const char c : frame) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

// Live: [topic][sequence][payload]. Replayed: an empty frame first, and in older releases no topic.
// So the end of a message is the same everywhere.
HeardMessage Read(const ZmqMessage& message, bool replayed) {
  HeardMessage heard{.topic = "", .sequence = {}, .payload = "", .replayed = replayed};
  const size_t size = message.size();
  const size_t topic_at = replayed ? 1 : 0;
  if (size > 0) heard.payload = message.back();
  if (size > 1) heard.sequence = ReadSequence(message[size - 2]);
  if (size > topic_at + 2) heard.topic = message[topic_at];
  return heard;
}

std::string Spelled(const EventSource& source) {
  std::string text = fmt::format("rank {} {}", source.rank, source.endpoint);
  if (!source.replay.empty()) text += fmt::format(", replay {}", source.replay);
  if (!source.topic.empty()) text += fmt::format(", topic {}", source.topic);
  return text;
}

Result<Endpoint> EndpointOf(const std::string& text) {
  Endpoint endpoint;
  TRY(endpoint.url, Url::Parse(text));
  if (endpoint.url.tls()) {
    TRY(endpoint.tls, TlsClientContext::Create(""));
  }
  return endpoint;
}

}  // namespace

double WallClock() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

EventListener::EventListener(Loop& loop, const ListenOptions& options, EventReport& report,
                             Note note)
    : loop_(loop), options_(options), report_(report), note_(std::move(note)), memory_(kMemory) {}

void EventListener::Start() {
  loop_.Post([this] {
    Spawn(Begin());
    if (options_.interval > Duration::zero()) Spawn(SummariseForever());
    if (options_.limit > Duration::zero()) Spawn(StopAfterLimit());
    if (options_.wait > Duration::zero()) Spawn(StopWhenNothingComes());
  });
}

void EventListener::Stop(int status) {
  if (stopped_) return;
  stopped_ = true;
  status_ = status;
  loop_.Stop();
}

// One endpoint that cannot be followed is said and does not stop the others.
Task<void> EventListener::Begin() {
  if (options_.drain) {
    note_(
        "--drain: TensorRT-LLM returns each event once; a router that polls the same engine does "
        "not get the events shown here");
  }
  bool any = !options_.bind.empty() && BeginBound();
  for (const std::string& endpoint : options_.endpoints) {
    if (endpoint.starts_with("http")) {
      auto beginning = BeginWorker(endpoint);
      const bool begun = co_await beginning;
      any |= begun;
    } else {
      EventSource source;
      source.endpoint = endpoint;
      source.replay = options_.replay_endpoint;
      any |= BeginSource(std::move(source), endpoint);
    }
  }
  if (!any) Stop(kExitFailed);
}

Task<bool> EventListener::BeginWorker(std::string url) {
  auto endpoint = EndpointOf(url);
  if (!endpoint) {
    note_(fmt::format("{}: {}", url, endpoint.error().what));
    co_return false;
  }
  auto poller = std::make_unique<Poller>();
  poller->endpoint = *std::move(endpoint);
  auto finding = FindEvents(loop_, resolver_, poller->endpoint, options_.api_key, options_.drain);
  auto found = co_await finding;
  if (!found) {
    note_(fmt::format("{}: {}", url, found.error().what));
    co_return false;
  }
  note_(fmt::format("{}: {}", url, found->note));
  if (found->polled) {
    poller->heard.origin.source = url;
    poller->heard.origin.label = LabelOf(url);
    poller->heard.shared = true;  // its ranks count each for itself
    pollers_.push_back(std::move(poller));
    Spawn(Poll(*pollers_.back(), std::move(found->first_answer)));
    co_return true;
  }
  bool any = false;
  for (EventSource& source : found->sources) {
    note_(fmt::format("{}: {}", url, Spelled(source)));
    any |= BeginSource(std::move(source), url);
  }
  co_return any;
}

bool EventListener::BeginSource(EventSource source, const std::string& named) {
  if (source.dials_out) {
    note_(
        fmt::format("{}: rank {} connects to {} itself; if nothing comes, listen there with "
                    "--bind",
                    named, source.rank, source.endpoint));
  }
  if (!options_.topic.empty()) source.topic = options_.topic;
  auto client = ZmtpClient::Create(loop_, resolver_, memory_, source.endpoint,
                                   {.topic = source.topic, .limits = kLimits});
  if (!client) {
    note_(fmt::format("{}: {}", named, client.error().what));
    return false;
  }
  auto stream = Describe(std::move(source), false);
  stream->client = *std::move(client);
  Spawn(Follow(Adopt(std::move(stream))));
  return true;
}

bool EventListener::BeginBound() {
  EventSource source;
  source.endpoint = options_.bind;
  source.topic = options_.topic;
  auto listener = ZmtpListener::Bind(loop_, memory_, options_.bind, {.limits = kLimits}, quiet_);
  if (!listener) {
    note_(listener.error().what);
    return false;
  }
  auto stream = Describe(std::move(source), true);
  stream->heard.origin.rank.reset();
  stream->listener = *std::move(listener);
  note_(fmt::format("waiting at tcp://{} for engines that connect",
                    stream->listener->address().ToString()));
  Spawn(FollowBound(Adopt(std::move(stream))));
  return true;
}

std::unique_ptr<EventListener::Stream> EventListener::Describe(EventSource source,
                                                               bool shared) const {
  auto stream = std::make_unique<Stream>();
  stream->heard.shared = shared;
  stream->heard.origin.source = source.endpoint;
  stream->heard.origin.label = LabelOf(source.endpoint);
  stream->heard.origin.rank = source.rank;
  stream->source = std::move(source);
  return stream;
}

EventListener::Stream& EventListener::Adopt(std::unique_ptr<Stream> stream) {
  return *streams_.emplace_back(std::move(stream));
}

void EventListener::Connection(Stream& stream, bool up) {
  if (!stopped_) report_.OnConnection(stream.heard, up, WallClock());
}

void EventListener::NoteFault(const Stream& stream, ZmtpFault fault) {
  if (stopped_ || fault == ZmtpFault::kNone) return;
  note_(fmt::format("{}: the connection was cut: {}", stream.source.endpoint,
                    fathom::Describe(fault)));
}

// A replay is asked for once the stream is connected, so that nothing is missed in between.
Task<void> EventListener::Follow(Stream& stream) {
  ZmtpClient& client = *stream.client;
  bool replay = options_.replay;
  while (!stopped_) {
    auto waiting = client.Next(replay ? loop_.now() + kReplayPatience : kNever);
    const ZmtpNews news = co_await waiting;
    if (stopped_) co_return;
    if (news == ZmtpNews::kConnected) Connection(stream, true);
    if (news == ZmtpNews::kDisconnected) {
      Connection(stream, false);
      NoteFault(stream, client.fault());
    }
    if (std::exchange(replay, false)) {
      auto replaying = Replay(stream);
      co_await replaying;
    }
    if (news == ZmtpNews::kMessage && !stopped_) Hear(stream, client.message(), false);
  }
}

Task<void> EventListener::FollowBound(Stream& stream) {
  if (options_.replay) {
    auto replaying = Replay(stream);
    co_await replaying;
  }
  auto running = stream.listener->Run(
      [this, &stream](ZmtpConnection& peer) { return FollowPeer(stream, peer); },
      [this, &stream](ZmtpRefusal, const Address&, ZmtpFault fault) { NoteFault(stream, fault); });
  co_await running;
}

Task<void> EventListener::FollowPeer(Stream& stream, ZmtpConnection& peer) {
  Connection(stream, true);
  while (!stopped_) {
    auto waiting = peer.Receive(kNever);
    const ZmtpNews news = co_await waiting;
    if (stopped_) co_return;
    if (news != ZmtpNews::kMessage) break;
    if (peer.message()[0].starts_with(options_.topic)) Hear(stream, peer.message(), false);
  }
  Connection(stream, false);
}

Task<void> EventListener::Replay(Stream& stream) {
  if (stream.source.replay.empty()) {
    note_(fmt::format("{}: the engine has no replay socket", stream.source.endpoint));
    co_return;
  }
  auto client = ZmtpClient::Create(loop_, resolver_, memory_, stream.source.replay,
                                   {.type = ZmtpType::kDealer, .topic = {}, .limits = kLimits});
  if (!client) {
    note_(client.error().what);
    co_return;
  }
  auto receiving = ReceiveReplay(stream, **client);
  co_await receiving;
}

Task<void> EventListener::ReceiveReplay(Stream& stream, ZmtpClient& client) {
  const std::string from_the_start(kSequenceBytes, '\0');
  const ZmqMessage question{"", from_the_start};
  uint64_t batches = 0;
  TimePoint deadline = loop_.now() + kReplayPatience;
  while (!stopped_) {
    auto waiting = client.Next(deadline);
    const ZmtpNews news = co_await waiting;
    if (stopped_) co_return;
    if (news == ZmtpNews::kConnected) {
      auto asking = client.Send(question);
      co_await asking;
      continue;
    }
    if (news != ZmtpNews::kMessage) {
      note_(fmt::format("{}: the replay at {} did not {} within {} s", stream.source.endpoint,
                        stream.source.replay, batches == 0 ? "answer" : "end",
                        Seconds(kReplayPatience)));
      co_return;
    }
    deadline = loop_.now() + kReplayPatience;
    const ZmqMessage& message = client.message();
    const HeardMessage heard = Read(message, true);
    if (heard.payload.empty() && heard.sequence == kReplayOver) break;
    ++batches;
    Hear(stream, message, true);
  }
  note_(fmt::format("{}: the engine replayed {} batch{}", stream.source.endpoint, batches,
                    batches == 1 ? "" : "es"));
}

Task<void> EventListener::Poll(Poller& poller, std::string first_answer) {
  TakePoll(poller, first_answer);
  while (!stopped_) {
    co_await loop_.Sleep(kPollPause);
    if (stopped_) co_return;
    auto polling = PollEvents(loop_, resolver_, poller.endpoint, options_.api_key);
    const auto answer = co_await polling;
    if (stopped_) co_return;
    const bool fine = answer && answer->status == 200;
    if (!fine && !poller.failing) {
      note_(fmt::format(
          "{}: {}", poller.heard.origin.source,
          answer ? fmt::format("the poll was answered {}", answer->status) : answer.error().what));
    }
    poller.failing = !fine;
    if (fine) TakePoll(poller, answer->body);
  }
}

void EventListener::TakePoll(Poller& poller, std::string_view body) {
  const uint64_t malformed_before = poller.decoder.counters().malformed;
  auto events = poller.decoder.Decode(body);
  report_.OnBytes(body.size());
  if (!events) {
    report_.OnMalformed(poller.heard, events.error().what, body.size(), WallClock());
    return;
  }
  const auto& counters = poller.decoder.counters();
  if (counters.malformed > malformed_before) {
    report_.OnMalformed(poller.heard, counters.first_problem, body.size(), WallClock());
  }
  for (PolledEvent& event : *events) {
    report_.OnPolled(poller.heard, std::move(event), WallClock());
    StopWhenEnough();
    if (stopped_) return;
  }
  if (poller.decoder.held(0) > 0 && !std::exchange(poller.said_held, true)) {
    note_(fmt::format("{}: events are held until one shows the block size",
                      poller.heard.origin.source));
  }
}

void EventListener::Hear(Stream& stream, const ZmqMessage& message, bool replayed) {
  report_.OnMessage(stream.heard, Read(message, replayed), WallClock());
  StopWhenEnough();
}

void EventListener::StopWhenEnough() {
  if (options_.count > 0 && report_.seen() >= options_.count) Stop(kExitFine);
}

Task<void> EventListener::SummariseForever() {
  while (!stopped_) {
    co_await loop_.Sleep(options_.interval);
    if (!stopped_) report_.Summarise(WallClock());
  }
}

Task<void> EventListener::StopAfterLimit() {
  co_await loop_.Sleep(options_.limit);
  Stop(kExitFine);
}

Task<void> EventListener::StopWhenNothingComes() {
  co_await loop_.Sleep(options_.wait);
  if (stopped_ || report_.seen() > 0) co_return;
  SayWhatToCheck();
  Stop(kExitFailed);
}

void EventListener::SayWhatToCheck() const {
  note_(fmt::format("no events within {} s", Seconds(options_.wait)));
  for (const auto& stream : streams_) {
    const EventSource& source = stream->source;
    if (!stream->heard.connected) {
      note_(
          fmt::format("{} is not connected: check host and port, and that the engine was started "
                      "with KV events (vLLM and SGLang: --kv-events-config with \"publisher\": "
                      "\"zmq\")",
                      source.endpoint));
      continue;
    }
    note_(fmt::format(
        "{} is connected{}: engines publish only when blocks are stored or removed, "
        "so send a new prompt that is longer than a block",
        source.endpoint,
        source.topic.empty()
            ? std::string()
            : fmt::format(", and only topics that begin with '{}' are shown", source.topic)));
  }
}

std::string EventListener::LabelOf(const std::string& endpoint) const {
  const size_t several = options_.endpoints.size() + (options_.bind.empty() ? 0 : 1);
  if (several < 2) return "";
  const size_t scheme = endpoint.find("://");
  return scheme == std::string::npos ? endpoint : endpoint.substr(scheme + 3);
}

}  // namespace fathom
