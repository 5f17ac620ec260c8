// A connected TCP socket, plain or under TLS, for one coroutine at a time in each direction.
//
// Deadlines      Every operation has one. When it passes, the operation ends with kTimeout and the
//                socket is still usable. After a partial write the only useful step is to close it.
// Cancellation   Cancel() ends the waiting operations with kCancelled; call it from another
//                coroutine on the same loop.
// Back-pressure  Nothing is buffered here: a write ends when the kernel has accepted every byte.
// Latency        TCP_NODELAY is always on.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "io/net/address.h"
#include "io/net/loop.h"
#include "io/net/net_error.h"

namespace fathom {

class Socket;
class TlsClientContext;
class TlsServerContext;
class TlsSession;

struct IoResult {
  IoStatus status = IoStatus::kOk;
  size_t bytes = 0;
  bool ok() const { return status == IoStatus::kOk; }
};

// What went wrong, for a log line.
std::string_view Describe(IoStatus status);
NetCause CauseOf(IoStatus status);

class ReadOperation final : public IoOperation {
 public:
  ReadOperation(Socket& socket, std::span<char> into, TimePoint deadline);
  IoResult await_resume() const { return {status_, bytes_}; }

 private:
  bool Attempt() override;
  Socket& socket_;
  const std::span<char> into_;
  size_t bytes_ = 0;
};

class WriteOperation final : public IoOperation {
 public:
  // Modifies `parts` as it advances; they and the bytes they point to must outlive the operation.
  // With `until_input` it ends early, with fewer bytes, as soon as input arrives (plain sockets
  // only).
  WriteOperation(Socket& socket, std::span<iovec> parts, TimePoint deadline,
                 bool until_input = false);
  WriteOperation(Socket& socket, std::string_view text, TimePoint deadline);
  IoResult await_resume() const { return {status_, bytes_}; }

 private:
  bool Attempt() override;
  bool Advance(size_t written);  // true when everything is written

  Socket& socket_;
  iovec single_{};
  std::span<iovec> parts_;
  const bool until_input_ = false;
  size_t bytes_ = 0;
};

struct ConnectResult : IoResult {
  int error = 0;  // errno, for kError
};

class ConnectOperation final : public IoOperation {
 public:
  ConnectOperation(Socket& socket, TimePoint deadline);
  ConnectResult await_resume() const { return {{status_, 0}, error_}; }

 private:
  bool Attempt() override;
  Socket& socket_;
  int error_ = 0;
};

class HandshakeOperation final : public IoOperation {
 public:
  HandshakeOperation(Socket& socket, TimePoint deadline);
  IoResult await_resume() const { return {status_, 0}; }

 private:
  bool Attempt() override;
  Socket& socket_;
};

class Socket {
 public:
  // Takes over a connected (or connecting) non-blocking descriptor.
  Socket(Loop& loop, int fd);
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // A new descriptor that has begun to connect; await Connected() on the socket made of it.
  static NetResult<int> BeginConnect(const Address& to);
  ConnectOperation Connected(TimePoint deadline) { return {*this, deadline}; }

  // Puts TLS on it; await Handshake() before anything else.
  void StartTls(const TlsServerContext& context);
  void StartTls(const TlsClientContext& context, const std::string& server_name);
  HandshakeOperation Handshake(TimePoint deadline) { return {*this, deadline}; }
  // Why the handshake failed.
  std::string TlsProblem() const;

  // At least one byte, unless the status says otherwise.
  ReadOperation Read(std::span<char> into, TimePoint deadline) { return {*this, into, deadline}; }
  // Everything, unless the status says otherwise.
  WriteOperation Write(std::span<iovec> parts, TimePoint deadline) {
    return {*this, parts, deadline};
  }
  WriteOperation Write(std::string_view text, TimePoint deadline) {
    return {*this, text, deadline};
  }
  // Everything, or the bytes written before the peer sent input.
  WriteOperation WriteUntilInput(std::span<iovec> parts, TimePoint deadline) {
    return {*this, parts, deadline, true};
  }

  void Cancel() { loop_.Cancel(source_); }

  // Calls the watcher when the peer closes the connection; nullptr removes the watcher. If the peer
  // has closed already, only hung_up() shows it.
  void Watch(HangupWatcher* watcher) { source_.watcher = watcher; }
  bool hung_up() const { return source_.hung_up; }
  // No input has arrived since the last read. An idle keep-alive connection must be quiet.
  bool quiet() const;

  // For a connection that may be silent for long: the kernel asks the peer now and then whether it
  // is still there, and waiting reads fail about a minute after it is not.
  void ProbeWhenIdle();
  // Closing will reset the connection (RST), so that the peer cannot mistake a truncated answer for
  // a complete one.
  void ResetOnClose();
  // Half-close: signals the end of sending; the peer may go on sending.
  void FinishSending();

  Loop& loop() const { return loop_; }

 private:
  friend class ReadOperation;
  friend class WriteOperation;
  friend class ConnectOperation;
  friend class HandshakeOperation;

  Loop& loop_;
  const int fd_;
  Source& source_;
  std::unique_ptr<TlsSession> tls_;
  bool reset_ = false;  // on close
};

}  // namespace fathom
