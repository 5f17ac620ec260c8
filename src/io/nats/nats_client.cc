#include "io/nats/nats_client.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "base/random.h"
#include "base/secret.h"
#include "io/nats/nats_connection.h"
#include "io/net/outbox.h"

namespace fathom {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(50);
// How soon a broken connection is noticed while nothing is published.
constexpr Duration kLookEvery = std::chrono::milliseconds(100);

std::string TooSmall(size_t accepted, size_t needed) {
  return fmt::format(
      "the NATS server accepts messages of at most {} bytes, and {} are needed: raise its "
      "max_payload",
      accepted, needed);
}

}  // namespace

// What the thread works with. It owns all of it, because it may outlive the client.
class NatsClient::Worker {
 public:
  Worker(NatsOptions options, std::vector<std::string> subjects, std::shared_ptr<NatsInbox> inbox)
      : options_(std::move(options)),
        subjects_(std::move(subjects)),
        inbox_(std::move(inbox)),
        random_(RandomSecret()) {}

  // The thread's.
  void Run() {
    while (!stopping()) {
      const std::string& url = options_.urls[random_.Below(options_.urls.size())];
      auto connection = Connect(url);
      if (connection) {
        pause_ = kFirstPause;
        Serve(**connection);
        const std::string why = (*connection)->problem();
        connection->reset();
        if (stopping()) break;
        Set(false, why.empty() ? "the NATS server closed the connection" : why);
      } else {
        Set(false, std::move(connection).error().In(url).what);
      }
      Pause();
    }
    const std::lock_guard lock(mutex_);
    ended_ = true;
    wake_.notify_all();
  }

  // The loop's.
  bool Push(OutboxItem item, bool bulk) {
    const std::lock_guard lock(mutex_);
    if (!status_.up) {
      ++status_.dropped;
      return false;
    }
    const bool was_empty = outbox_.empty();
    const bool kept = bulk ? outbox_.PushBulk(std::move(item)) : outbox_.Push(std::move(item));
    if (was_empty) wake_.notify_one();
    return kept;
  }

  void Stop() {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }

  // False: it has not ended.
  bool AwaitEnd(Duration patience) {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, patience, [this] { return ended_; });
  }

  NatsStatus status() const {
    const std::lock_guard lock(mutex_);
    NatsStatus status = status_;
    status.dropped += outbox_.dropped();
    return status;
  }

 private:
  bool stopping() const {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }

  Result<std::unique_ptr<NatsConnection>> Connect(const std::string& url) {
    NatsOptions options = options_;
    options.urls = {url};
    TRY(std::unique_ptr<NatsConnection> connection, NatsConnection::Connect(options));
    for (const std::string& subject : subjects_) {
      TRY_VOID(connection->Subscribe(
          subject, [inbox = inbox_](std::string_view bytes) { inbox->Take(bytes); }));
    }
    return connection;
  }

  // Until the connection breaks.
  void Serve(NatsConnection& connection) {
    const size_t accepted = connection.max_payload();
    const bool too_small = accepted < options_.longest_message;
    Set(true, too_small ? TooSmall(accepted, options_.longest_message) : "");
    TimePoint looked{};
    while (const auto next = Next()) {
      const TimePoint now = std::chrono::steady_clock::now();
      if (next->bytes && !Send(connection, *next)) return;
      if (now - looked < kLookEvery) continue;
      looked = now;
      if (connection.closed()) return;
      // What it does not permit is reported here, and the connection stays.
      std::string problem = connection.problem();
      if (!problem.empty()) Set(true, std::move(problem));
    }
  }

  // An item without bytes: none for a while. nullopt: Stop() was called.
  std::optional<OutboxItem> Next() {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, kLookEvery, [this] { return stopping_ || !outbox_.empty(); });
    if (stopping_) return std::nullopt;
    return outbox_.empty() ? OutboxItem() : outbox_.Pop();
  }

  // False: the connection is not usable any more.
  bool Send(NatsConnection& connection, const OutboxItem& item) {
    const bool sent = connection.Publish(item.to, *item.bytes).has_value();
    // One that is longer than the server accepts fails by itself.
    const bool usable = sent || item.bytes->size() > connection.max_payload();
    const std::lock_guard lock(mutex_);
    if (sent) {
      status_.sent_bytes += item.bytes->size();
    } else {
      ++status_.dropped;
    }
    return usable;
  }

  void Set(bool up, std::string problem) {
    {
      const std::lock_guard lock(mutex_);
      if (status_.up == up && status_.problem == problem) return;
      status_.up = up;
      status_.problem = problem;
      if (!up) outbox_.Clear();
    }
    inbox_->Tell(up, std::move(problem));
  }

  void Pause() {
    const auto pause = Duration(
        static_cast<int64_t>(static_cast<double>(pause_.count()) * (0.5 + 0.5 * random_.Unit())));
    pause_ = std::min(2 * pause_, options_.longest_pause);
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, pause, [this] { return stopping_; });
  }

  const NatsOptions options_;
  const std::vector<std::string> subjects_;
  const std::shared_ptr<NatsInbox> inbox_;
  Random random_;
  Duration pause_ = kFirstPause;

  mutable std::mutex mutex_;
  // All guarded by mutex_.
  std::condition_variable wake_;
  Outbox outbox_{kMostBytes};
  NatsStatus status_;
  bool stopping_ = false;
  bool ended_ = false;
};

NatsClient::NatsClient(Loop& loop, NatsOptions options, std::vector<std::string> subjects)
    : inbox_(std::make_shared<NatsInbox>(loop)),
      worker_(std::make_shared<Worker>(std::move(options), std::move(subjects), inbox_)) {}

NatsClient::~NatsClient() {
  Stop();
  if (!thread_.joinable()) return;
  if (worker_->AwaitEnd(kPatience)) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void NatsClient::Start(NatsInbox::OnMessage on_message, NatsInbox::OnState on_state) {
  inbox_->Open(std::move(on_message), std::move(on_state));
  thread_ = std::thread([worker = worker_] { worker->Run(); });
}

void NatsClient::Stop() {
  inbox_->Close();
  worker_->Stop();
}

bool NatsClient::Publish(std::string subject, std::string_view bytes) {
  return worker_->Push({std::move(subject), std::make_shared<const std::string>(bytes)}, false);
}

bool NatsClient::PublishBulk(std::string subject, std::string_view bytes) {
  return worker_->Push({std::move(subject), std::make_shared<const std::string>(bytes)}, true);
}

NatsStatus NatsClient::status() const {
  NatsStatus status = worker_->status();
  const NatsInbox::Counts counts = inbox_->counts();
  status.received_bytes = counts.bytes;
  status.missed = counts.missed;
  return status;
}

}  // namespace fathom
