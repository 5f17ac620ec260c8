// A nats-server of its own for a test, on a free port of the loopback. It can be killed, stopped
// and started again on the same port.
//
//   if (!NatsServer::installed()) GTEST_SKIP() << "nats-server is not installed";
//   NatsServer server({"--user", "u", "--pass", "p"});
//   server.Start();
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "testing/becomes.h"
#include "testing/loopback_pair.h"

namespace fathom {

class NatsServer {
 public:
  explicit NatsServer(std::vector<std::string> arguments = {})
      : port_(ClosedPort().port()), arguments_(std::move(arguments)) {}
  ~NatsServer() { Kill(); }
  NatsServer(const NatsServer&) = delete;
  NatsServer& operator=(const NatsServer&) = delete;

  static bool installed() { return !Program().empty(); }

  std::string url() const { return "nats://127.0.0.1:" + std::to_string(port_); }
  uint16_t port() const { return port_; }

  // Returns when it accepts connections.
  void Start() {
    std::vector<std::string> words = {Program(), "-a", "127.0.0.1", "-p", std::to_string(port_)};
    words.insert(words.end(), arguments_.begin(), arguments_.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    CHECK(::posix_spawn_file_actions_init(&actions) == 0);
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
      ::posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_WRONLY, 0);
    }
    CHECK(::posix_spawn(&process_, words[0].c_str(), &actions, nullptr, argv.data(), environ) == 0);
    ::posix_spawn_file_actions_destroy(&actions);
    CHECK(Becomes([this] { return Accepts(); }));
  }
  void Kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(std::exchange(process_, -1), nullptr, 0);
  }
  void Pause() const { ::kill(process_, SIGSTOP); }
  void Resume() const { ::kill(process_, SIGCONT); }

 private:
  static std::string Program() {
    for (const char* const folder : {"/usr/sbin/", "/usr/bin/", "/usr/local/bin/"}) {
      const std::string path = std::string(folder) + "nats-server";
      if (std::filesystem::exists(path)) return path;
    }
    return "";
  }
  bool Accepts() const {
    const Address to = *Address::Numeric("127.0.0.1", port_);
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool accepted = ::connect(fd, to.get(), to.size()) == 0;
    ::close(fd);
    return accepted;
  }

  const uint16_t port_;
  const std::vector<std::string> arguments_;
  pid_t process_ = -1;
};

}  // namespace fathom
