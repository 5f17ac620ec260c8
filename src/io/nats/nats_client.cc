#include "io/nats/nats_client.h"

#include <algorithm>
#include <utility>

#include "base/random.h"
#include "base/secret.h"
#include "io/nats/nats_connection.h"
#include "io/net/outbox.h"
#include "io/net/wakeable_wait.h"

namespace fathom {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(50);
// A server that stayed this long is tried again without much of a pause.
constexpr Duration kNatsStay = std::chrono::seconds(1);

std::string TooSmall(size_t accepted, size_t needed) {
  return fmt::format(
      "the NATS server accepts messages of at most {} bytes, and {} are needed: raise its "
      "max_payload",
      accepted, needed);
}

}  // namespace

// Lives until Run() has ended.
class NatsClient::Core {
 public:
  Core(Loop& loop, Resolver& resolver, NatsOptions options, std::vector<std::string> subjects)
      : loop_(loop),
        resolver_(resolver),
        options_(std::move(options)),
        subjects_(std::move(subjects)),
        random_(RandomSecret()),
        next_url_(random_.Below(options_.urls.size())) {}

  void Listen(OnMessage on_message, OnState on_state) {
    on_message_ = std::move(on_message);
    on_state_ = std::move(on_state);
  }
  // Until Stop().
  static Task<void> Run(std::shared_ptr<Core> core);
  void Stop();
  bool Push(OutboxItem item, bool bulk);
  NatsStatus status() const;

 private:
  Task<void> Connect();
  Task<void> Serve();
  Task<void> Receive();
  Task<void> Send();
  Task<void> Pause();
  Task<void> WaitUntil(TimePoint until);
  void Wake();
  void Set(bool up, std::string problem);

  Loop& loop_;
  Resolver& resolver_;
  const NatsOptions options_;
  const std::vector<std::string> subjects_;
  OnMessage on_message_;
  OnState on_state_;
  Random random_;
  size_t next_url_;
  std::unique_ptr<NatsConnection> connection_;
  WakeableWait* waiting_ = nullptr;
  Outbox outbox_{kMostBytes};
  Duration pause_ = kFirstPause;
  NatsStatus status_;
  bool stopped_ = false;
};

Task<void> NatsClient::Core::Run(std::shared_ptr<Core> core) {
  while (!core->stopped_) {
    auto connecting = core->Connect();
    co_await connecting;
    if (core->stopped_) break;
    auto pausing = core->Pause();
    co_await pausing;
  }
}

void NatsClient::Core::Stop() {
  if (std::exchange(stopped_, true)) return;
  status_.up = false;
  if (connection_) connection_->Close();
  Wake();
}

// Until the connection breaks, or does not come about.
Task<void> NatsClient::Core::Connect() {
  const std::string& url = options_.urls[next_url_++ % options_.urls.size()];
  connection_ = std::make_unique<NatsConnection>(loop_, options_);
  auto opening = connection_->Open(resolver_, url, subjects_);
  auto opened = co_await opening;
  if (!opened) {
    Set(false, std::move(opened).error().In(url).what);
  } else {
    auto serving = Serve();
    co_await serving;
  }
  connection_.reset();
}

Task<void> NatsClient::Core::Serve() {
  const TimePoint began = loop_.now();
  const size_t accepted = connection_->max_payload();
  const bool too_small = accepted < options_.longest_message;
  Set(true, too_small ? TooSmall(accepted, options_.longest_message) : connection_->problem());
  auto receiving = Receive();
  auto sending = Send();
  co_await sending;
  co_await receiving;
  if (loop_.now() - began >= kNatsStay) pause_ = kFirstPause;
  Set(false, connection_->problem());
}

Task<void> NatsClient::Core::Receive() {
  for (;;) {
    auto reading = connection_->Next();
    const NatsNews news = co_await reading;
    if (stopped_ || news == NatsNews::kEnded) break;
    if (news == NatsNews::kDue) Wake();
    if (news == NatsNews::kProblem) Set(true, connection_->problem());
    if (news != NatsNews::kMessage) continue;
    status_.received_bytes += connection_->message().size();
    on_message_(connection_->message());
  }
  Wake();
}

Task<void> NatsClient::Core::Send() {
  while (!stopped_ && !connection_->ended()) {
    auto keeping = connection_->Upkeep();
    const bool kept = co_await keeping;
    if (!kept) break;
    if (outbox_.empty()) {
      auto waiting = WaitUntil(connection_->due());
      co_await waiting;
      continue;
    }
    const OutboxItem item = outbox_.Pop();
    auto publishing = connection_->Publish(item);
    const bool sent = co_await publishing;
    if (sent) {
      status_.sent_bytes += item.bytes->size();
    } else {
      ++status_.dropped;
      break;
    }
  }
}

Task<void> NatsClient::Core::Pause() {
  const double part = 0.5 + 0.5 * random_.Unit();
  const Duration pause(static_cast<int64_t>(static_cast<double>(pause_.count()) * part));
  pause_ = std::min(2 * pause_, options_.longest_pause);
  auto waiting = WaitUntil(loop_.now() + pause);
  co_await waiting;
}

Task<void> NatsClient::Core::WaitUntil(TimePoint until) {
  WakeableWait wait(loop_, until);
  waiting_ = &wait;
  co_await wait;
  waiting_ = nullptr;
}

void NatsClient::Core::Wake() {
  if (waiting_ != nullptr) waiting_->Wake();
}

void NatsClient::Core::Set(bool up, std::string problem) {
  if (stopped_ || (status_.up == up && status_.problem == problem)) return;
  status_.up = up;
  status_.problem = std::move(problem);
  if (!up) outbox_.Clear();
  const std::string shown = status_.problem;  // the callback may change it
  on_state_(up, shown);
}

bool NatsClient::Core::Push(OutboxItem item, bool bulk) {
  const bool accepted =
      status_.up && item.bytes->size() <= connection_->max_payload() && IsNatsSubject(item.to);
  if (!accepted) {
    ++status_.dropped;
    return false;
  }
  Wake();
  return bulk ? outbox_.PushBulk(std::move(item)) : outbox_.Push(std::move(item));
}

NatsStatus NatsClient::Core::status() const {
  NatsStatus status = status_;
  status.dropped += outbox_.dropped();
  return status;
}

NatsClient::NatsClient(Loop& loop, Resolver& resolver, NatsOptions options,
                       std::vector<std::string> subjects)
    : core_(std::make_shared<Core>(loop, resolver, std::move(options), std::move(subjects))) {}

NatsClient::~NatsClient() { Stop(); }

void NatsClient::Start(OnMessage on_message, OnState on_state) {
  core_->Listen(std::move(on_message), std::move(on_state));
  Spawn(Core::Run(core_));
}

void NatsClient::Stop() { core_->Stop(); }

bool NatsClient::Publish(std::string subject, std::string_view bytes) {
  return core_->Push({std::move(subject), std::make_shared<const std::string>(bytes)}, false);
}

bool NatsClient::PublishBulk(std::string subject, std::string_view bytes) {
  return core_->Push({std::move(subject), std::make_shared<const std::string>(bytes)}, true);
}

NatsStatus NatsClient::status() const { return core_->status(); }

}  // namespace fathom
