#include "router/replicas/mesh_link.h"

#include <algorithm>
#include <utility>

#include "base/secret.h"
#include "router/replicas/replica_message.h"

namespace fathom {
namespace {

constexpr Duration kFirstMeshPause = std::chrono::milliseconds(50);
// A peer that stayed this long is dialled again without much of a pause.
constexpr Duration kMeshStay = std::chrono::seconds(1);
// A subscriber has nothing to say but what it subscribes to.
constexpr ZmtpLimits kFromSubscriber{.frames = 1, .message = 256, .command = 256};

constexpr std::string_view kIdProperty = "X-Fathom-Replica";
constexpr std::string_view kProcessProperty = "X-Fathom-Process";

}  // namespace

ZmtpProperties MeshIdentity::Properties() const {
  return {{std::string(kIdProperty), id}, {std::string(kProcessProperty), process}};
}

MeshLink::MeshLink(Loop& loop, Resolver& resolver, ByteBudget& budget, MeshIdentity self,
                   std::string host, uint16_t port)
    : loop_(loop),
      resolver_(resolver),
      budget_(budget),
      self_(std::move(self)),
      host_(std::move(host)),
      port_(port),
      random_(RandomSecret()),
      wake_(loop),
      pause_(kFirstMeshPause),
      changed_(loop.now()) {}

void MeshLink::Stop() {
  stopped_ = true;
  connected_ = false;
  cancellation_.Cancel();
  if (connection_) connection_->Cancel();
  if (pausing_ != nullptr) pausing_->Wake();
  wake_.Wake();
}

bool MeshLink::Usable() {
  if (connected_ && !loops_back_) return true;
  if (!loops_back_) ++dropped_;
  return false;
}

bool MeshLink::Push(std::shared_ptr<const std::string> message) {
  if (!Usable()) return false;
  wake_.Wake();
  return outbox_.Push({"", std::move(message)});
}

bool MeshLink::PushBulk(std::shared_ptr<const std::string> message) {
  if (!Usable()) return false;
  wake_.Wake();
  return outbox_.PushBulk({"", std::move(message)});
}

Task<void> MeshLink::Run(std::shared_ptr<MeshLink> link) {
  while (!link->stopped_) {
    auto dialling = link->Dial();
    const bool reached = co_await dialling;
    if (reached && !link->stopped_) {
      auto serving = link->Serve();
      co_await serving;
      link->Lost();
    }
    link->connection_.reset();
    if (link->stopped_) break;
    auto pausing = link->Pause();
    co_await pausing;
  }
}

Task<bool> MeshLink::Dial() {
  auto resolving = resolver_.Resolve(loop_, host_, port_, loop_.now() + kDialTime, &cancellation_);
  auto found = co_await resolving;
  if (stopped_) co_return false;
  if (!found) {
    problem_ = found.error().what;
    co_return false;
  }
  addresses_ = *std::move(found);
  const std::vector<Address> addresses = addresses_;
  for (const Address& address : addresses) {
    auto dialling = DialOne(address);
    const bool reached = co_await dialling;
    if (reached || stopped_) co_return reached;
  }
  co_return false;
}

Task<bool> MeshLink::DialOne(Address address) {
  const auto fd = Socket::BeginConnect(address);
  if (!fd) {
    problem_ = fd.error().what;
    co_return false;
  }
  connection_ = std::make_unique<ZmtpConnection>(loop_, *fd, ZmtpType::kPub, std::string(),
                                                 kFromSubscriber, budget_, self_.Properties());
  auto opening = connection_->Open(loop_.now() + kDialTime);
  const ZmtpNews news = co_await opening;
  if (stopped_) co_return false;
  if (news == ZmtpNews::kConnected) {
    Greet();
    co_return true;
  }
  const ZmtpFault fault = connection_->fault();
  if (news == ZmtpNews::kTimeout) {
    problem_ = "no answer in time";
  } else {
    problem_ = fault == ZmtpFault::kNone ? "no replica listens there" : Describe(fault);
  }
  connection_.reset();
  co_return false;
}

void MeshLink::Greet() {
  const std::string_view peer = connection_->PeerProperty(kIdProperty).value_or("");
  peer_ = IsReplicaName(peer) ? peer : "";
  loops_back_ = connection_->PeerProperty(kProcessProperty) == self_.process;
  connected_ = true;
  problem_.clear();
  changed_ = loop_.now();
}

void MeshLink::Lost() {
  const ZmtpFault fault = connection_->fault();
  connected_ = false;
  problem_ = stalled_ ? "the replica does not read what is sent" : Describe(fault);
  outbox_.Clear();
  if (loop_.now() - changed_ >= kMeshStay) pause_ = kFirstMeshPause;
  changed_ = loop_.now();
}

Task<void> MeshLink::Serve() {
  ended_ = false;
  stalled_ = false;
  auto ending = AwaitEnd();
  while (!stopped_ && !ended_) {
    if (outbox_.empty()) {
      co_await wake_;
      continue;
    }
    const OutboxItem item = outbox_.Pop();
    ZmqMessage message;
    message.Add(*item.bytes);
    auto sending = connection_->Send(message);
    const bool sent = co_await sending;
    stalled_ = !sent && !ended_;
    if (!sent) break;
    sent_bytes_ += item.bytes->size();
  }
  connection_->Cancel();
  co_await ending;
}

// Reads what the subscriber says, and notices when it goes.
Task<void> MeshLink::AwaitEnd() {
  for (;;) {
    auto receiving = connection_->Receive(kNever);
    const ZmtpNews news = co_await receiving;
    if (news != ZmtpNews::kMessage) break;
  }
  ended_ = true;
  connection_->Cancel();
  wake_.Wake();
}

Task<void> MeshLink::Pause() {
  const double part = 0.5 + 0.5 * random_.Unit();
  const Duration pause(static_cast<int64_t>(static_cast<double>(pause_.count()) * part));
  pause_ = std::min(2 * pause_, kLongestPause);
  WakeableWait wait(loop_, loop_.now() + pause);
  pausing_ = &wait;
  co_await wait;
  pausing_ = nullptr;
}

}  // namespace fathom
