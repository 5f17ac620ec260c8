#include "io/net/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "io/net/tls.h"

namespace fathom {

std::string_view Describe(IoStatus status) {
  switch (status) {
    case IoStatus::kOk:
      return "ok";
    case IoStatus::kEof:
      return "connection closed by peer";
    case IoStatus::kTimeout:
      return "timed out";
    case IoStatus::kCancelled:
      return "cancelled";
    case IoStatus::kError:
      return "connection broken";
  }
  return "unknown";
}

NetCause CauseOf(IoStatus status) {
  switch (status) {
    case IoStatus::kTimeout:
      return NetCause::kTimeout;
    case IoStatus::kCancelled:
      return NetCause::kCancelled;
    default:
      return NetCause::kBroken;
  }
}

ReadOperation::ReadOperation(Socket& socket, std::span<char> into, TimePoint deadline)
    : IoOperation(socket.loop_, socket.source_, deadline, Want::kRead),
      socket_(socket),
      into_(into) {}

bool ReadOperation::Attempt() {
  if (socket_.tls_) {
    const TlsSession::Step step = socket_.tls_->Read(into_);
    want_ = step.want_write ? Want::kWrite : Want::kRead;
    if (step.again && IsTaken()) return Break();
    if (step.again) {
      socket_.source_.readable = false;  // TLS has read everything from the descriptor
      return false;
    }
    status_ = step.status;
    bytes_ = step.bytes;
    return true;
  }
  if (!socket_.source_.readable) return false;
  for (;;) {
    const ssize_t n = ::recv(socket_.fd_, into_.data(), into_.size(), 0);
    if (n > 0) {
      bytes_ = static_cast<size_t>(n);
      // A short read has emptied the socket, and epoll will report the next byte. It will not
      // report the end of the stream again if that was reported together with these bytes.
      if (bytes_ < into_.size() && !socket_.source_.hung_up) socket_.source_.readable = false;
      return true;
    }
    if (n == 0) {
      status_ = IoStatus::kEof;
      return true;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      socket_.source_.readable = false;
      return false;
    }
    status_ = IoStatus::kError;
    return true;
  }
}

WriteOperation::WriteOperation(Socket& socket, std::span<iovec> parts, TimePoint deadline,
                               bool until_input)
    : IoOperation(socket.loop_, socket.source_, deadline, Want::kWrite),
      socket_(socket),
      parts_(parts),
      until_input_(until_input) {
  socket.source_.input_ends_write = until_input;
}

WriteOperation::WriteOperation(Socket& socket, std::string_view text, TimePoint deadline)
    : IoOperation(socket.loop_, socket.source_, deadline, Want::kWrite),
      socket_(socket),
      single_{const_cast<char*>(text.data()), text.size()},
      parts_(&single_, 1) {}

bool WriteOperation::Advance(size_t written) {
  bytes_ += written;
  while (!parts_.empty() && written >= parts_.front().iov_len) {
    written -= parts_.front().iov_len;
    parts_ = parts_.subspan(1);
  }
  if (parts_.empty()) return true;
  parts_.front().iov_base = static_cast<char*>(parts_.front().iov_base) + written;
  parts_.front().iov_len -= written;
  return false;
}

bool WriteOperation::Attempt() {
  for (;;) {
    if (Advance(0)) return true;
    // Only after the first written byte, because earlier input is not a reply to this message. Not
    // under TLS, where input may be protocol records.
    if (until_input_ && bytes_ > 0 && socket_.source_.readable && !socket_.tls_) {
      if (!socket_.quiet()) return true;
      // It was stale: a connection that is used again keeps it if the last answer exactly filled
      // its buffer.
      socket_.source_.readable = false;
    }
    if (socket_.tls_) {
      const TlsSession::Step step = socket_.tls_->Write(parts_);
      want_ = step.want_write ? Want::kWrite : Want::kRead;
      if (step.again && IsTaken()) return Break();
      if (step.again) return false;
      status_ = step.status;
      if (status_ != IoStatus::kOk || Advance(step.bytes)) return true;
      continue;
    }
    msghdr message{};
    message.msg_iov = parts_.data();
    message.msg_iovlen = parts_.size();
    const ssize_t n = ::sendmsg(socket_.fd_, &message, MSG_NOSIGNAL);
    if (n >= 0) {
      if (Advance(static_cast<size_t>(n))) return true;
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      socket_.source_.writable = false;
      return false;
    }
    status_ = IoStatus::kError;
    return true;
  }
}

ConnectOperation::ConnectOperation(Socket& socket, TimePoint deadline)
    : IoOperation(socket.loop_, socket.source_, deadline, Want::kWrite), socket_(socket) {}

bool ConnectOperation::Attempt() {
  if (!socket_.source_.writable) return false;
  socklen_t size = sizeof(error_);
  getsockopt(socket_.fd_, SOL_SOCKET, SO_ERROR, &error_, &size);
  if (error_ == EINPROGRESS) return false;
  status_ = error_ == 0 ? IoStatus::kOk : IoStatus::kError;
  return true;
}

HandshakeOperation::HandshakeOperation(Socket& socket, TimePoint deadline)
    : IoOperation(socket.loop_, socket.source_, deadline, Want::kRead), socket_(socket) {}

bool HandshakeOperation::Attempt() {
  const TlsSession::Step step = socket_.tls_->Handshake();
  want_ = step.want_write ? Want::kWrite : Want::kRead;
  if (step.again) return false;
  status_ = step.status;
  return true;
}

Socket::Socket(Loop& loop, int fd) : loop_(loop), fd_(fd), source_(loop.Register(fd)) {
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

Socket::~Socket() {
  if (tls_ && !reset_) tls_->Shutdown();  // would report a truncated stream as complete
  loop_.Release(source_);
  ::close(fd_);
}

NetResult<int> Socket::BeginConnect(const Address& to) {
  const int fd = ::socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return NetFail(CauseOfErrno(errno), "cannot open a socket: {}", std::strerror(errno));
  }
  if (::connect(fd, to.get(), to.size()) != 0 && errno != EINPROGRESS) {
    const int error = errno;
    ::close(fd);
    return NetFail(CauseOfErrno(error), "{}", DescribeErrno(error));
  }
  return fd;
}

void Socket::StartTls(const TlsServerContext& context) { tls_ = context.Accept(fd_); }

void Socket::StartTls(const TlsClientContext& context, const std::string& server_name) {
  tls_ = context.Connect(fd_, server_name);
}

std::string Socket::TlsProblem() const { return tls_ ? tls_->problem() : ""; }

bool Socket::quiet() const {
  if (!source_.readable) return true;
  if (tls_ && tls_->pending()) return false;
  // `readable` may be stale: a read that exactly filled its buffer does not clear it. Under TLS
  // that is the usual case.
  char next = 0;
  return ::recv(fd_, &next, 1, MSG_PEEK) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

void Socket::ProbeWhenIdle() {
  const int on = 1;
  const int idle = 30;  // seconds, as is the next
  const int between = 10;
  const int unanswered = 3;
  setsockopt(fd_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(fd_, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
  setsockopt(fd_, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof(between));
  setsockopt(fd_, IPPROTO_TCP, TCP_KEEPCNT, &unanswered, sizeof(unanswered));
}

void Socket::ResetOnClose() {
  reset_ = true;
  const linger abort{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort));
}

void Socket::FinishSending() {
  if (tls_) tls_->Shutdown();
  ::shutdown(fd_, SHUT_WR);
}

}  // namespace fathom
