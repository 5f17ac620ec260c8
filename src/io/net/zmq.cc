#include "io/net/zmq.h"

#include <zmq.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
// libzmq and OpenSSL pass memory between threads with atomics and locks that the sanitizer does not
// see, because these libraries were built without it (when two loops verify one certificate at
// once, the first decodes it under OpenSSL's own lock). Compiled in, so that it holds for tests and
// the program; in this file, because a separate file would not be linked.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:libzmq.so\nrace:libcrypto.so\n";
}
#endif
#endif

namespace fathom {
namespace {

constexpr int kMostSockets = 16384;
constexpr uint32_t kMessagesPerTurn = 256;
// After a connection is lost libzmq immediately reports when it will retry. Without such a report
// for this long it has given up.
constexpr Duration kRedialAfter = std::chrono::milliseconds(500);

constexpr int kFailedHandshake = ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                                 ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                                 ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
constexpr int kDialling =
    ZMQ_EVENT_CONNECTED | ZMQ_EVENT_CONNECT_DELAYED | ZMQ_EVENT_CONNECT_RETRIED;
constexpr int kWatched =
    kFailedHandshake | kDialling | ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED;

int TypeOf(ZmqType type) {
  switch (type) {
    case ZmqType::kSub:
      return ZMQ_SUB;
    case ZmqType::kPub:
      return ZMQ_PUB;
    case ZmqType::kDealer:
      return ZMQ_DEALER;
    case ZmqType::kRouter:
      return ZMQ_ROUTER;
  }
  return ZMQ_SUB;
}

template <class T>
void Set(void* socket, int option, T value) {
  CHECK(zmq_setsockopt(socket, option, &value, sizeof(value)) == 0);
}

int Milliseconds(Duration d) {
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(d).count());
}

int DescriptorOf(void* socket) {
  int fd = -1;
  size_t size = sizeof(fd);
  CHECK(zmq_getsockopt(socket, ZMQ_FD, &fd, &size) == 0);
  return fd;
}

// Reading ZMQ_EVENTS also makes libzmq process the commands of its I/O thread, which resets the
// descriptor: from here on it becomes readable for new events only.
bool Readable(void* socket) {
  int events = 0;
  size_t size = sizeof(events);
  return zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size) == 0 && (events & ZMQ_POLLIN) != 0;
}

class Frame {
 public:
  Frame() { zmq_msg_init(&frame_); }
  ~Frame() { zmq_msg_close(&frame_); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  // False: no frame; errno has the reason.
  bool Receive(void* socket) {
    for (;;) {
      if (zmq_msg_recv(&frame_, socket, ZMQ_DONTWAIT) >= 0) return true;
      if (errno != EINTR) return false;
    }
  }
  bool more() const { return zmq_msg_more(&frame_) != 0; }
  std::string_view text() {
    return {static_cast<const char*>(zmq_msg_data(&frame_)), zmq_msg_size(&frame_)};
  }

 private:
  zmq_msg_t frame_;
};

bool SendFrame(void* socket, const std::string& frame, int flags) {
  for (;;) {
    if (zmq_send(socket, frame.data(), frame.size(), flags | ZMQ_DONTWAIT) >= 0) return true;
    if (errno != EINTR) return false;
  }
}

std::unexpected<Error> EndpointProblem(std::string_view doing, const std::string& endpoint) {
  const int error = errno;
  if (error == EINVAL || error == EPROTONOSUPPORT) {
    return Fail(Blame::kCaller, "'{}' is not a ZeroMQ endpoint; write tcp://HOST:PORT", endpoint);
  }
  if (error == EADDRINUSE) {
    return Fail(Blame::kCaller, "cannot {} '{}': the port is taken; choose another or free it",
                doing, endpoint);
  }
  if (error == ENODEV || error == EADDRNOTAVAIL) {
    return Fail(Blame::kCaller,
                "cannot {} '{}': no such address on this machine; write tcp://*:PORT", doing,
                endpoint);
  }
  return Fail(Blame::kCaller, "cannot {} '{}': {}", doing, endpoint, zmq_strerror(error));
}

}  // namespace

ZmqContext::ZmqContext() : context_(zmq_ctx_new()) {
  CHECK(context_ != nullptr);
  zmq_ctx_set(context_, ZMQ_IO_THREADS, 1);
  zmq_ctx_set(context_, ZMQ_MAX_SOCKETS, kMostSockets);
  zmq_ctx_set(context_, ZMQ_BLOCKY, 0);
}

ZmqContext::~ZmqContext() {
  // With an open socket zmq_ctx_term() would block forever.
  CHECK(open_.load(std::memory_order_acquire) == 0);  // pairs with ~ZmqSocket
  while (zmq_ctx_term(context_) != 0 && errno == EINTR) {
  }
}

// Reads libzmq's monitor events about a socket's connections. It stays parked and never completes:
// each readiness of its descriptor only triggers another Attempt().
class ZmqSocket::Monitor final : public IoOperation {
 public:
  Monitor(ZmqSocket& owner, void* pair, Source& source)
      : IoOperation(owner.loop_, source, kNever, Want::kRead),
        owner_(owner),
        pair_(pair),
        own_source_(source),
        redial_(*this) {
    await_suspend(std::noop_coroutine());
    owner_.loop_.Retry(own_source_);  // for events from before the registration
  }

  // Stops the event sender first: without a reader it would block forever.
  ~Monitor() override {
    zmq_socket_monitor(owner_.socket_, nullptr, 0);
    own_source_.reader = nullptr;
    owner_.loop_.Forget(own_source_);
    zmq_close(pair_);
  }

  bool Attempt() override {
    for (;;) {
      Frame event;
      if (!event.Receive(pair_)) return false;
      bool more = event.more();
      if (event.text().size() >= sizeof(uint16_t)) {
        uint16_t kind = 0;
        std::memcpy(&kind, event.text().data(), sizeof(kind));
        Hear(kind);
      }
      while (more) {
        Frame endpoint;
        if (!endpoint.Receive(pair_)) return false;
        more = endpoint.more();
      }
    }
  }

 private:
  struct RedialAlarm : Timer {
    explicit RedialAlarm(Monitor& m) : Timer(&OnFire), monitor(m) {}
    static void OnFire(Timer& timer) { static_cast<RedialAlarm&>(timer).monitor.owner_.Redial(); }
    Monitor& monitor;
  };

  // A connection whose handshake failed is reported first as failed, then as disconnected. One
  // thread sends both, so no other event comes between. Such a connection was never counted as a
  // peer.
  void Hear(int kind) {
    if (kind == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) owner_.Count(ZmqPeerEvent::kConnected);
    if ((kind & kFailedHandshake) != 0) failed_ = true;
    if ((kind & kDialling) != 0) redial_.Disarm();
    if (kind != ZMQ_EVENT_DISCONNECTED) return;
    if (!std::exchange(failed_, false)) owner_.Count(ZmqPeerEvent::kDisconnected);
    if (!owner_.dialled_.empty()) {
      owner_.loop_.timers().Arm(redial_, owner_.loop_.now() + kRedialAfter);
    }
  }

  ZmqSocket& owner_;
  void* const pair_;
  Source& own_source_;
  RedialAlarm redial_;
  bool failed_ = false;
};

Result<std::unique_ptr<ZmqSocket>> ZmqSocket::Open(ZmqContext& context, Loop& loop, ZmqType type,
                                                   const ZmqOptions& options) {
  void* const socket = zmq_socket(context.context_, TypeOf(type));
  if (socket == nullptr) {
    return Fail(Blame::kOverload, "cannot open a ZeroMQ socket: {}", zmq_strerror(errno));
  }
  std::unique_ptr<ZmqSocket> opened(new ZmqSocket(context, loop, socket));
  opened->Apply(type, options);
  if (options.count_peers && !opened->StartMonitor()) {
    return Fail(Blame::kOverload, "cannot watch a ZeroMQ socket: {}", zmq_strerror(errno));
  }
  return opened;
}

ZmqSocket::ZmqSocket(ZmqContext& context, Loop& loop, void* socket)
    : context_(context),
      loop_(loop),
      socket_(socket),
      source_(loop.RegisterInput(DescriptorOf(socket))) {
  context_.open_.fetch_add(1, std::memory_order_relaxed);
}

ZmqSocket::~ZmqSocket() {
  monitor_.reset();
  Cancel();
  loop_.Forget(source_);
  zmq_close(socket_);
  context_.open_.fetch_sub(1, std::memory_order_release);  // pairs with ~ZmqContext
}

void ZmqSocket::Apply(ZmqType type, const ZmqOptions& options) {
  Set(socket_, ZMQ_LINGER, 0);
  Set(socket_, ZMQ_IPV6, 1);
  Set(socket_, ZMQ_RCVHWM, options.receive_limit);
  Set(socket_, ZMQ_SNDHWM, options.send_limit);
  Set(socket_, ZMQ_MAXMSGSIZE, options.max_message);
  Set(socket_, ZMQ_RECONNECT_IVL, Milliseconds(options.reconnect_first));
  Set(socket_, ZMQ_RECONNECT_IVL_MAX, Milliseconds(options.reconnect_most));
  if (type == ZmqType::kRouter) Set(socket_, ZMQ_ROUTER_MANDATORY, 1);
  if (!options.keepalive) return;
  Set(socket_, ZMQ_TCP_KEEPALIVE, 1);
  Set(socket_, ZMQ_TCP_KEEPALIVE_IDLE, 30);
  Set(socket_, ZMQ_TCP_KEEPALIVE_INTVL, 10);
  Set(socket_, ZMQ_TCP_KEEPALIVE_CNT, 3);
}

bool ZmqSocket::StartMonitor() {
  const std::string name = fmt::format("inproc://monitor-{}",
                                       context_.monitors_.fetch_add(1, std::memory_order_relaxed));
  if (zmq_socket_monitor(socket_, name.c_str(), kWatched) != 0) return false;
  void* const pair = zmq_socket(context_.context_, ZMQ_PAIR);
  if (pair == nullptr) {
    zmq_socket_monitor(socket_, nullptr, 0);
    return false;
  }
  Set(pair, ZMQ_LINGER, 0);
  Set(pair, ZMQ_RCVHWM, 0);  // no limit: at a limit libzmq's I/O thread would block
  CHECK(zmq_connect(pair, name.c_str()) == 0);
  monitor_ = std::make_unique<Monitor>(*this, pair, loop_.RegisterInput(DescriptorOf(pair)));
  return true;
}

Result<void> ZmqSocket::Connect(const std::string& endpoint) {
  CHECK(dialled_.empty());
  if (zmq_connect(socket_, endpoint.c_str()) != 0) return EndpointProblem("connect to", endpoint);
  dialled_ = endpoint;
  WakeReceiver();
  return {};
}

Result<std::string> ZmqSocket::Bind(const std::string& endpoint) {
  if (zmq_bind(socket_, endpoint.c_str()) != 0) return EndpointProblem("bind", endpoint);
  WakeReceiver();
  std::array<char, 512> bound{};
  size_t size = bound.size();
  CHECK(zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, bound.data(), &size) == 0);
  return std::string(bound.data());
}

void ZmqSocket::Redial() {
  zmq_disconnect(socket_, dialled_.c_str());
  zmq_connect(socket_, dialled_.c_str());
  WakeReceiver();
}

void ZmqSocket::Subscribe(std::string_view prefix) {
  CHECK(zmq_setsockopt(socket_, ZMQ_SUBSCRIBE, prefix.data(), prefix.size()) == 0);
  WakeReceiver();
}

// Any call on the socket makes libzmq process the commands of its I/O thread. That may reset the
// descriptor before the loop has seen it readable, so a waiting receiver is woken here.
void ZmqSocket::WakeReceiver() {
  if (source_.reader != nullptr && Readable(socket_)) loop_.Retry(source_);
}

bool ZmqSocket::Send(const ZmqMessage& message) {
  CHECK(!message.empty());
  bool sent = true;
  for (size_t i = 0; i < message.size() && sent; ++i) {
    sent = SendFrame(socket_, message[i], i + 1 < message.size() ? ZMQ_SNDMORE : 0);
  }
  WakeReceiver();
  return sent;
}

// The frames of a message arrive together or not at all.
IoStatus ZmqSocket::TakeMessage(ZmqMessage& into, bool& taken) {
  into.Clear();
  taken = false;
  for (;;) {
    Frame frame;
    if (!frame.Receive(socket_)) return errno == EAGAIN ? IoStatus::kOk : IoStatus::kError;
    into.Add(frame.text());
    if (!frame.more()) break;
  }
  taken = true;
  if (monitor_) monitor_->Attempt();  // libzmq reports a connection before its first message
  return IoStatus::kOk;
}

bool ZmqSocket::TryReceive(ZmqMessage& into) {
  bool taken = false;
  TakeMessage(into, taken);
  return taken;
}

void ZmqSocket::Count(ZmqPeerEvent event) {
  ++(event == ZmqPeerEvent::kConnected ? connects_ : disconnects_);
  if (on_peer_) on_peer_(event);
}

ReceiveOperation::ReceiveOperation(ZmqSocket& socket, ZmqMessage& into, TimePoint deadline)
    : IoOperation(socket.loop_, socket.source_, deadline, Want::kRead),
      socket_(socket),
      into_(into) {}

bool ReceiveOperation::Attempt() {
  if (socket_.streak_ == kMessagesPerTurn) {
    socket_.streak_ = 0;
    socket_.loop_.Retry(socket_.source_);
    return false;
  }
  bool taken = false;
  status_ = socket_.TakeMessage(into_, taken);
  if (taken) ++socket_.streak_;
  if (status_ == IoStatus::kOk && !taken) socket_.streak_ = 0;
  return taken || status_ != IoStatus::kOk;
}

}  // namespace fathom
