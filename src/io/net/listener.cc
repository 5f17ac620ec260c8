#include "io/net/listener.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace fathom {
namespace {

constexpr int kBacklog = 4096;
constexpr Duration kPauseWhenFull = std::chrono::milliseconds(100);

}  // namespace

class Listener::AcceptOperation final : public IoOperation {
 public:
  explicit AcceptOperation(Listener& listener)
      : IoOperation(listener.loop_, *listener.source_, kNever, Want::kRead), fd_(listener.fd_) {}

  struct Accepted {
    IoStatus status;
    int fd;
    int error;
  };
  Accepted await_resume() const { return {status_, accepted_, error_}; }

 private:
  bool Attempt() override {
    for (;;) {
      accepted_ = ::accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (accepted_ >= 0) return true;
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
      error_ = errno;
      status_ = IoStatus::kError;
      return true;
    }
  }

  const int fd_;
  int accepted_ = -1;
  int error_ = 0;
};

Result<std::unique_ptr<Listener>> Listener::Bind(Loop& loop, const Address& address, Log& log) {
  const int fd = ::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return Fail(Blame::kCaller, "cannot open a socket: {}", std::strerror(errno));
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(fd, address.get(), address.size()) != 0 || ::listen(fd, kBacklog) != 0) {
    const int error = errno;
    ::close(fd);
    return Fail(Blame::kCaller, "cannot listen on {}: {}", address.ToString(),
                std::strerror(error));
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size);
  const Address actual = Address::Of(reinterpret_cast<sockaddr*>(&bound), size);
  return std::unique_ptr<Listener>(new Listener(loop, fd, actual, log));
}

Listener::Listener(Loop& loop, int fd, const Address& address, Log& log)
    : loop_(loop), fd_(fd), source_(nullptr), address_(address), log_(log) {}

Listener::~Listener() { Close(); }

void Listener::Start(std::function<void(int fd)> on_accept) {
  on_accept_ = std::move(on_accept);
  source_ = &loop_.Register(fd_);
  Spawn(AcceptForever(open_));
}

Task<void> Listener::AcceptForever(std::shared_ptr<const bool> open) {
  for (;;) {
    const AcceptOperation::Accepted accepted = co_await AcceptOperation(*this);
    if (accepted.status == IoStatus::kCancelled) co_return;
    if (accepted.status == IoStatus::kOk) {
      on_accept_(accepted.fd);
      continue;
    }
    if (const auto before = refusals_.Next(loop_.now())) {
      log_.Warn("Cannot accept a connection; pausing",
                {{"error", std::strerror(accepted.error)}, {"similar_before", *before}});
    }
    co_await loop_.Sleep(kPauseWhenFull);
    if (!*open) co_return;
  }
}

void Listener::Close() {
  if (fd_ < 0) return;
  if (source_ != nullptr) {
    loop_.Cancel(*source_);
    loop_.Release(*source_);
  }
  ::close(fd_);
  fd_ = -1;
  *open_ = false;
}

}  // namespace fathom
