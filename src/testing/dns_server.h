// A name server for tests, on 127.0.0.1, over UDP and TCP: slow, silent or wrong as each test
// wants.
//
//   DnsServer server;
//   server.Set("engine.test", {.addresses = {"127.0.0.1"}, .ttl = 1});
//   Resolver resolver(ResolverOptions{.servers = {server.address()}, ...});
//   EXPECT_EQ(server.asked("engine.test"), 1);
//
// Names that were not set do not exist.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "io/net/address.h"

namespace fathom {

class DnsServer {
 public:
  enum class Manner : uint8_t {
    kAnswer,
    kSilent,
    kSilentAboutIpv6,
    kTruncated,  // over UDP; TCP has everything
    kUnreadable,
    kNoise,        // bytes that are no message, then the answer
    kForgedFirst,  // an answer with a wrong id and another address, then the right one
    kFail,         // SERVFAIL
    kFailAboutIpv4,
    kRefuse,
    kNoName,  // NXDOMAIN
  };
  struct Name {
    std::vector<std::string> addresses = {};
    uint32_t ttl = 60;
    Manner manner = Manner::kAnswer;
    Duration delay{};
  };

  DnsServer() {
    do {
      Close();
      udp_ = Bound(SOCK_DGRAM, 0);
      tcp_ = Bound(SOCK_STREAM, PortOf(udp_));
    } while (tcp_ < 0);
    CHECK(::listen(tcp_, 16) == 0);
    thread_ = std::thread([this] { Run(); });
  }
  ~DnsServer() {
    const uint64_t one = 1;
    CHECK(::write(stop_, &one, sizeof(one)) == sizeof(one));
    thread_.join();
    Close();
    ::close(stop_);
  }
  DnsServer(const DnsServer&) = delete;
  DnsServer& operator=(const DnsServer&) = delete;

  Address address() const { return *Address::Numeric("127.0.0.1", PortOf(udp_)); }

  void Set(const std::string& name, Name what) {
    const std::lock_guard lock(mutex_);
    names_[name] = std::move(what);
  }
  void Unset(const std::string& name) {
    const std::lock_guard lock(mutex_);
    names_.erase(name);
  }
  // Questions for the name's IPv4 addresses. One that is sent again counts once.
  int asked(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(asked_[name].size());
  }
  int asked_over_tcp() const { return asked_over_tcp_; }

 private:
  struct Question {
    std::string wire;  // the whole message
    std::string name;
    size_t end = 0;  // of the question in it
    bool v6 = false;
    bool other = false;  // for neither kind of address
  };
  struct Reply {
    TimePoint due;
    sockaddr_in to;
    std::string text;
  };

  static int Bound(int type, uint16_t port) {
    const int fd = ::socket(AF_INET, type | SOCK_CLOEXEC, 0);
    const Address at = *Address::Numeric("127.0.0.1", port);
    if (::bind(fd, at.get(), at.size()) == 0) return fd;
    ::close(fd);
    return -1;
  }
  static uint16_t PortOf(int fd) {
    sockaddr_in at{};
    socklen_t size = sizeof(at);
    CHECK(::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) == 0);
    return ntohs(at.sin_port);
  }
  void Close() {
    if (udp_ >= 0) ::close(udp_);
    if (tcp_ >= 0) ::close(tcp_);
  }

  static TimePoint Now() { return std::chrono::steady_clock::now(); }

  void Run() {
    for (;;) {
      std::vector<pollfd> polled = {{stop_, POLLIN, 0}, {udp_, POLLIN, 0}, {tcp_, POLLIN, 0}};
      for (const auto& [fd, _] : connections_) polled.push_back({fd, POLLIN, 0});
      ::poll(polled.data(), polled.size(), replies_.empty() ? -1 : 1);
      if (polled[0].revents != 0) break;
      if (polled[1].revents != 0) OnDatagram();
      if (polled[2].revents != 0) connections_[::accept4(tcp_, nullptr, nullptr, SOCK_CLOEXEC)];
      for (size_t i = 3; i < polled.size(); ++i) {
        if (polled[i].revents != 0) OnInput(polled[i].fd);
      }
      std::erase_if(replies_, [&](const Reply& reply) {
        if (Now() < reply.due) return false;
        Send(reply.to, reply.text);
        return true;
      });
    }
    for (const auto& [fd, _] : connections_) ::close(fd);
  }

  void Send(const sockaddr_in& to, const std::string& text) const {
    ::sendto(udp_, text.data(), text.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof(to));
  }

  void OnDatagram() {
    char bytes[2048];
    sockaddr_in from{};
    socklen_t size = sizeof(from);
    const ssize_t n =
        ::recvfrom(udp_, bytes, sizeof(bytes), 0, reinterpret_cast<sockaddr*>(&from), &size);
    if (n < 12) return;
    const Question question = Read(std::string(bytes, static_cast<size_t>(n)));
    const Name name = Find(question);
    for (std::string& text : AnswersTo(question, name, false)) {
      replies_.push_back({Now() + name.delay, from, std::move(text)});
    }
  }

  void OnInput(int fd) {
    char bytes[2048];
    const ssize_t n = ::recv(fd, bytes, sizeof(bytes), 0);
    if (n <= 0) {
      connections_.erase(fd);
      ::close(fd);
      return;
    }
    std::string& got = connections_[fd].append(bytes, static_cast<size_t>(n));
    while (got.size() > 14) {
      const size_t length =
          size_t{static_cast<unsigned char>(got[0])} << 8 | static_cast<unsigned char>(got[1]);
      if (got.size() < length + 2) return;
      ++asked_over_tcp_;
      const Question question = Read(got.substr(2, length));
      got.erase(0, length + 2);
      for (const std::string& text : AnswersTo(question, Find(question), true)) {
        const std::string framed = Number16(text.size()) + text;
        ::send(fd, framed.data(), framed.size(), MSG_NOSIGNAL);
      }
    }
  }

  static Question Read(std::string wire) {
    Question question{.wire = std::move(wire)};
    size_t at = 12;
    const std::string& w = question.wire;
    while (at < w.size() && w[at] != 0) {
      const auto length = static_cast<unsigned char>(w[at]);
      if (!question.name.empty()) question.name += '.';
      question.name += w.substr(at + 1, length);
      at += length + size_t{1};
    }
    question.end = std::min(at + 5, w.size());
    const char type = at + 2 < w.size() ? w[at + 2] : '\0';
    question.v6 = type == 28;
    question.other = type != 28 && type != 1;
    return question;
  }

  Name Find(const Question& question) {
    const std::lock_guard lock(mutex_);
    if (!question.v6 && !question.other) asked_[question.name].insert(question.wire.substr(0, 2));
    const auto found = names_.find(question.name);
    return found != names_.end() ? found->second : Name{.manner = Manner::kNoName};
  }

  static std::string Number16(size_t n) {
    return {static_cast<char>(n >> 8 & 0xff), static_cast<char>(n & 0xff)};
  }

  static std::string Message(const Question& question, int rcode, bool truncated,
                             const std::vector<std::string>& records) {
    std::string text = question.wire.substr(0, 2);
    text += static_cast<char>(truncated ? 0x87 : 0x85);
    text += static_cast<char>(0x80 | rcode);
    text += Number16(1) + Number16(records.size()) + std::string(4, '\0');
    text += question.wire.substr(12, question.end - 12);
    for (const std::string& record : records) text += record;
    return text;
  }

  static std::string Record(const std::string& address, uint32_t ttl) {
    const bool v6 = address.find(':') != address.npos;
    char ip[16];
    CHECK(inet_pton(v6 ? AF_INET6 : AF_INET, address.c_str(), ip) == 1);
    return Number16(0xc00c) + Number16(v6 ? 28 : 1) + Number16(1) + Number16(ttl >> 16) +
           Number16(ttl & 0xffff) + Number16(v6 ? 16 : 4) + std::string(ip, v6 ? 16 : 4);
  }

  static std::vector<std::string> RecordsFor(const Question& question, const Name& name) {
    std::vector<std::string> records;
    for (const std::string& address : name.addresses) {
      const bool v6 = address.find(':') != address.npos;
      if (v6 == question.v6 && !question.other) records.push_back(Record(address, name.ttl));
    }
    return records;
  }

  static std::vector<std::string> AnswersTo(const Question& question, const Name& name, bool tcp) {
    constexpr int kServfail = 2;
    constexpr int kNxdomain = 3;
    constexpr int kRefused = 5;
    const std::string right = Message(question, 0, false, RecordsFor(question, name));
    switch (name.manner) {
      case Manner::kSilent:
        return {};
      case Manner::kSilentAboutIpv6:
        if (question.v6) return {};
        break;
      case Manner::kTruncated:
        if (!tcp) return {Message(question, 0, true, {})};
        break;
      case Manner::kUnreadable:
        return {Message(question, 0, false, {std::string("\x40\xff\xff\xff", 4)})};
      case Manner::kNoise:
        return {"\x01\x02\x03", std::string(600, '\xff'), right};
      case Manner::kForgedFirst: {
        Question forged = question;
        forged.wire[0] = static_cast<char>(forged.wire[0] ^ 0x55);
        return {Message(forged, 0, false, {Record("203.0.113.66", 3600)}), right};
      }
      case Manner::kFail:
        return {Message(question, kServfail, false, {})};
      case Manner::kFailAboutIpv4:
        if (!question.v6) return {Message(question, kServfail, false, {})};
        break;
      case Manner::kRefuse:
        return {Message(question, kRefused, false, {})};
      case Manner::kNoName:
        return {Message(question, kNxdomain, false, {})};
      case Manner::kAnswer:
        break;
    }
    return {right};
  }

  int udp_ = -1;
  int tcp_ = -1;
  const int stop_ = eventfd(0, EFD_CLOEXEC);
  std::list<Reply> replies_;                // on the thread
  std::map<int, std::string> connections_;  // on the thread: over TCP, with what was received
  std::atomic<int> asked_over_tcp_{0};
  std::mutex mutex_;
  std::map<std::string, Name> names_;                   // guarded by mutex_
  std::map<std::string, std::set<std::string>> asked_;  // guarded by mutex_: ids of the messages
  std::thread thread_;
};

}  // namespace fathom
