#include "lab/mock/event_publisher.h"

#include <chrono>
#include <utility>

#include "base/check.h"

namespace fathom {
namespace {

constexpr uint64_t kEndMark = ~uint64_t{0};
constexpr Duration kLeave = std::chrono::milliseconds(50);
constexpr Duration kRetryBind = std::chrono::milliseconds(5);
constexpr Duration kComeBack = std::chrono::milliseconds(300);

std::string SequenceFrame(uint64_t sequence) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<char>(sequence >> shift));
  }
  return bytes;
}

std::optional<uint64_t> ParseSequence(std::string_view bytes) {
  if (bytes.size() != sizeof(uint64_t)) return std::nullopt;
  uint64_t sequence = 0;
  for (const char c : bytes) sequence = sequence << 8 | static_cast<unsigned char>(c);
  return sequence;
}

double UnixSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

Result<std::unique_ptr<EventPublisher>> EventPublisher::Create(ZmqContext& context, Loop& loop,
                                                               const EventWire& wire,
                                                               const KvEventOptions& options,
                                                               size_t rank, EventPlaces places) {
  std::unique_ptr<EventPublisher> publisher(
      new EventPublisher(context, loop, wire, options, rank, std::move(places)));
  TRY_VOID(publisher->Open());
  publisher->Begin();
  return publisher;
}

// Leaves nothing open if it fails.
Result<void> EventPublisher::Open() {
  const ZmqOptions quiet{.count_peers = false};
  ZmqOptions patient = quiet;
  patient.count_peers = places_.dial;  // whoever dials does not give up
  TRY(auto publisher, ZmqSocket::Open(context_, loop_, ZmqType::kPub, patient));
  if (places_.dial) {
    TRY_VOID(publisher->Connect(places_.publish));
  } else {
    TRY(places_.publish, publisher->Bind(places_.publish));
  }
  if (places_.replay) {
    TRY(auto replayer, ZmqSocket::Open(context_, loop_, ZmqType::kRouter, quiet));
    TRY(places_.replay, replayer->Bind(*places_.replay));
    replayer_ = std::move(replayer);
  }
  publisher_ = std::move(publisher);
  return {};
}

// The first thing that a new process says.
void EventPublisher::Begin() {
  if (wire_.begins_cleared() && !options_.silent) Add({AllBlocksCleared{}}, {});
}

void EventPublisher::Start() {
  if (replayer_) Spawn(AnswerReplays(*this, *replayer_));
}

void EventPublisher::Add(const std::vector<KvEvent>& batch, BatchFate fate) {
  const uint64_t sequence = next_++;
  std::string payload = wire_.Batch(batch, UnixSeconds(), rank_, options_.block_size_label);
  if (fate.published) {
    ZmqMessage message = {options_.topic, SequenceFrame(sequence), payload};
    if (presence_ != Presence::kHere) {
      unsent_.push_back(std::move(message));
    } else {
      publisher_->Send(message);
    }
  }
  if (!fate.replayable) return;
  kept_.push_back({sequence, std::move(payload)});
  if (kept_.size() > options_.buffer_steps) kept_.pop_front();
}

void EventPublisher::Restart() {
  kept_.clear();
  unsent_.clear();
  next_ = 0;
  presence_ = Presence::kLeaving;
  Begin();
  Wait(kLeave);
}

void EventPublisher::Wait(Duration time) { loop_.timers().Arm(alarm_, loop_.now() + time); }

// The next step of a restart.
void EventPublisher::Proceed() {
  if (presence_ == Presence::kLeaving) {
    publisher_.reset();
    replayer_.reset();
    presence_ = Presence::kGone;
    Wait(kRetryBind);
  } else if (presence_ == Presence::kGone) {
    if (!Open()) return Wait(kRetryBind);
    Start();
    presence_ = Presence::kBack;
    Wait(kComeBack);
  } else {
    presence_ = Presence::kHere;
    for (const ZmqMessage& message : std::exchange(unsent_, {})) publisher_->Send(message);
  }
}

// A cancelled receive means that the socket is gone, and perhaps the publisher with it.
Task<void> EventPublisher::AnswerReplays(EventPublisher& self, ZmqSocket& socket) {
  ZmqMessage request;
  for (;;) {
    const IoStatus status = co_await socket.Receive(request, kNever);
    if (status != IoStatus::kOk) co_return;
    self.Replay(socket, request);
  }
}

void EventPublisher::Replay(ZmqSocket& socket, const ZmqMessage& request) {
  if (request.size() != 3 || !request[1].empty()) return;
  const auto from = ParseSequence(request[2]);
  if (!from) return;
  for (const Kept& kept : kept_) {
    if (kept.sequence < *from) continue;
    if (!Answer(socket, request[0], options_.topic, kept.sequence, kept.payload)) return;
  }
  Answer(socket, request[0], "", kEndMark, "");
}

bool EventPublisher::Answer(ZmqSocket& socket, const std::string& peer, std::string_view topic,
                            uint64_t sequence, std::string_view payload) {
  ZmqMessage message = {peer, ""};
  if (wire_.replays_topic()) message.Add(topic);
  message.Add(SequenceFrame(sequence));
  message.Add(payload);
  return socket.Send(message);
}

}  // namespace fathom
