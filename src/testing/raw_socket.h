// Plain blocking sockets for tests that control every byte and its time.
//
// Every wait ends after ten seconds, so that a test fails instead of hanging.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "io/net/address.h"

namespace fathom {

class RawSocket {
 public:
  explicit RawSocket(int fd) : fd_(fd) {
    const timeval patience{.tv_sec = 10, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  explicit RawSocket(const Address& to) : RawSocket(::socket(to.family(), SOCK_STREAM, 0)) {
    CHECK(::connect(fd_, to.get(), to.size()) == 0);
  }
  RawSocket(RawSocket&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), got_(std::move(other.got_)), reset_(other.reset_) {}
  RawSocket& operator=(RawSocket&&) = delete;
  ~RawSocket() { Close(); }

  bool Send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      text.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }

  // Everything up to and including `mark`; or all received bytes, if the peer closed first.
  std::string ReadUntil(std::string_view mark) {
    size_t at;
    while ((at = got_.find(mark)) == std::string::npos) {
      if (!More()) return std::exchange(got_, {});
    }
    return Take(at + mark.size());
  }

  std::string Read(size_t bytes) {
    while (got_.size() < bytes && More()) {
    }
    return Take(std::min(bytes, got_.size()));
  }

  // Everything until the peer closes the connection.
  std::string ReadToEnd() {
    while (More()) {
    }
    return std::exchange(got_, {});
  }

  // One answer with a content-length, head and body.
  std::string ReadAnswer() {
    std::string answer = ReadUntil("\r\n\r\n");
    const size_t at = answer.find("content-length: ");
    if (at != std::string::npos) answer += Read(std::stoul(answer.substr(at + 16)));
    return answer;
  }

  // After a read that reached the end: was the connection reset (or silent for too long)?
  bool reset() const { return reset_; }

  void FinishSending() { ::shutdown(fd_, SHUT_WR); }
  void Reset() {
    const linger abort{.l_onoff = 1, .l_linger = 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort));
    Close();
  }
  void Close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  bool More() {
    char room[65536];
    const ssize_t n = ::recv(fd_, room, sizeof(room), 0);
    if (n > 0) got_.append(room, static_cast<size_t>(n));
    if (n < 0) reset_ = true;
    return n > 0;
  }
  std::string Take(size_t bytes) {
    std::string out = got_.substr(0, bytes);
    got_.erase(0, bytes);
    return out;
  }

  int fd_;
  std::string got_;
  bool reset_ = false;
};

// A server that runs its script on each connection, one after the other. The connection is closed
// when the script returns.
class ScriptedServer {
 public:
  using Script = std::function<void(RawSocket&)>;

  explicit ScriptedServer(Script each) : each_(std::move(each)) {
    listening_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const Address any = *Address::Numeric("127.0.0.1", 0);
    CHECK(::bind(listening_, any.get(), any.size()) == 0 && ::listen(listening_, 128) == 0);
    sockaddr_storage storage{};
    socklen_t size = sizeof(storage);
    ::getsockname(listening_, reinterpret_cast<sockaddr*>(&storage), &size);
    address_ = Address::Of(reinterpret_cast<sockaddr*>(&storage), size);
    thread_ = std::thread([this] { AcceptForever(); });
  }
  ~ScriptedServer() { Stop(); }

  // Accepts no more connections; waits for running scripts.
  void Stop() {
    if (!thread_.joinable()) return;
    ::shutdown(listening_, SHUT_RDWR);
    thread_.join();
    ::close(listening_);
  }

  const Address& address() const { return address_; }
  std::string url() const { return "http://" + address_.ToString(); }

 private:
  void AcceptForever() {
    std::vector<std::thread> running;
    for (;;) {
      const int fd = ::accept(listening_, nullptr, nullptr);
      if (fd < 0) break;
      running.emplace_back([this, fd] {
        RawSocket socket(fd);
        each_(socket);
      });
    }
    for (std::thread& thread : running) thread.join();
  }

  const Script each_;
  int listening_;
  Address address_;
  std::thread thread_;
};

}  // namespace fathom
