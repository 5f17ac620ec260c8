#include "io/kube/exec_credential.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/peer_text.h"
#include "base/text.h"
#include "codec/base64.h"
#include "codec/json.h"

extern char** environ;

namespace fathom {
namespace {

constexpr std::string_view kInfoVariable = "KUBERNETES_EXEC_INFO";

// A descriptor that is closed with its scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { Close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  void Close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_;
};

// The request that the program finds in its environment.
std::string ExecInfo(const ExecPlugin& plugin, const KubeAccess& access) {
  JsonWriter w;
  w.BeginObject().Key("kind").String("ExecCredential");
  w.Key("apiVersion").String(plugin.api_version);
  w.Key("spec").BeginObject().Key("interactive").Bool(false);
  if (plugin.provide_cluster_info) {
    w.Key("cluster").BeginObject().Key("server").String(access.server.ToString());
    if (!access.tls_server_name.empty()) w.Key("tls-server-name").String(access.tls_server_name);
    if (!access.authorities.empty()) {
      w.Key("certificate-authority-data").String(EncodeBase64(access.authorities));
    }
    w.EndObject();
  }
  w.EndObject().EndObject();
  return w.Take();
}

// Ours, with the plugin's own in place of those of the same name.
std::vector<std::string> Environment(const ExecPlugin& plugin, const KubeAccess& access) {
  std::vector<std::pair<std::string, std::string>> own = plugin.variables;
  own.emplace_back(kInfoVariable, ExecInfo(plugin, access));
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    const bool replaced =
        std::ranges::any_of(own, [&](const auto& variable) { return variable.first == name; });
    if (!replaced) all.emplace_back(text);
  }
  for (const auto& [name, value] : own) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string Hint(const ExecPlugin& plugin) {
  const std::string hint = Shown(Trim(plugin.install_hint), 300);
  return hint.empty() ? "" : " (" + hint + ")";
}

// A running program, which does not outlive this.
class Child {
 public:
  static Result<Child> Start(const ExecPlugin& plugin, const KubeAccess& access, int output) {
    std::vector<std::string> words = {plugin.command};
    words.insert(words.end(), plugin.arguments.begin(), plugin.arguments.end());
    std::vector<std::string> environment = Environment(plugin, access);
    posix_spawn_file_actions_t actions;
    CHECK(::posix_spawn_file_actions_init(&actions) == 0);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    pid_t pid = 0;
    const int failed = ::posix_spawnp(&pid, plugin.command.c_str(), &actions, nullptr,
                                      Pointers(words).data(), Pointers(environment).data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (failed == 0) return Child(pid);
    return Fail(Blame::kCaller, "cannot run {}: {}{}", Shown(plugin.command), ::strerror(failed),
                Hint(plugin));
  }

  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    Wait();
  }

  // Its status, as waitpid() has it. One that lives on after its output is closed is ended.
  int WaitUntil(TimePoint deadline) {
    constexpr Duration kLook = std::chrono::milliseconds(10);
    int status = 0;
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() >= deadline) {
        ::kill(pid_, SIGKILL);
        return Wait();
      }
      std::this_thread::sleep_for(kLook);
    }
    pid_ = 0;
    return status;
  }

  int Wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status;
  }

 private:
  explicit Child(pid_t pid) : pid_(pid) {}

  pid_t pid_;
};

// All that is written until the other end is closed.
Result<std::string> ReadAll(int fd, TimePoint deadline, const std::stop_token& stop) {
  constexpr int64_t kLookMilliseconds = 100;
  std::string text;
  char part[4096];
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (stop.stop_requested()) return Fail(Blame::kCaller, "it was ended");
    if (left.count() <= 0) return Fail(Blame::kCaller, "it did not end in time");
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready =
        ::poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left.count(), kLookMilliseconds)));
    if (ready <= 0) continue;
    const ssize_t bytes = ::read(fd, part, sizeof(part));
    if (bytes == 0) return text;
    if (bytes < 0 && errno != EINTR) return Fail(Blame::kCaller, "its output cannot be read");
    text.append(part, static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
    if (text.size() > kPluginAnswer) {
      return Fail(Blame::kCaller, "it has printed more than {} bytes", kPluginAnswer);
    }
  }
}

std::string TextAt(const Json& object, std::string_view name) {
  const Json* const member = object.Find(name);
  return member == nullptr || member->string() == nullptr ? "" : *member->string();
}

// "2026-03-01T12:00:00Z", as Kubernetes writes times; fractions and zones are allowed.
std::optional<std::chrono::system_clock::time_point> ReadExpiry(const std::string& text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, read = 0;
  if (std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%n", &year, &month, &day, &hour, &minute,
                  &second, &read) != 6) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  std::string_view rest = std::string_view(text).substr(static_cast<size_t>(read));
  if (rest.starts_with('.')) rest.remove_prefix(std::min(rest.find_first_of("Z+-"), rest.size()));
  int zone_hours = 0, zone_minutes = 0;
  if (rest.starts_with('+') || rest.starts_with('-')) {
    std::sscanf(rest.data() + 1, "%2d:%2d", &zone_hours, &zone_minutes);
    if (rest.front() == '-') {
      zone_hours = -zone_hours;
      zone_minutes = -zone_minutes;
    }
  }
  return std::chrono::sys_days(date) + std::chrono::hours(hour - zone_hours) +
         std::chrono::minutes(minute - zone_minutes) + std::chrono::seconds(second);
}

Result<KubeIdentity> Run(const ExecPlugin& plugin, const KubeAccess& access, Duration patience,
                         const std::stop_token& stop) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Fail(Blame::kCaller, "no pipe: {}", ::strerror(errno));
  const Descriptor output(ends[0]);
  Descriptor input(ends[1]);
  const TimePoint deadline = std::chrono::steady_clock::now() + patience;
  TRY(Child child, Child::Start(plugin, access, input.get()));
  input.Close();
  TRY(const std::string printed, ReadAll(output.get(), deadline, stop));
  const int status = child.WaitUntil(deadline);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return Fail(Blame::kCaller, "it ended with status {}; log in again, and try kubectl get pods",
                WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  return ReadExecCredential(printed, plugin.api_version);
}

}  // namespace

Result<KubeIdentity> ReadExecCredential(std::string_view printed, std::string_view api_version) {
  const auto answer = Json::Parse(printed);
  if (!answer || TextAt(*answer, "kind") != "ExecCredential") {
    return Fail(Blame::kCaller, "it has printed no ExecCredential");
  }
  if (!api_version.empty() && TextAt(*answer, "apiVersion") != api_version) {
    return Fail(Blame::kCaller, "it answers in a version other than {}", Shown(api_version, 80));
  }
  const Json* const status = answer->Find("status");
  if (status == nullptr) return Fail(Blame::kCaller, "its ExecCredential has no status");
  KubeIdentity identity;
  identity.token = Trim(TextAt(*status, "token"));
  identity.certificate = TextAt(*status, "clientCertificateData");
  identity.key = TextAt(*status, "clientKeyData");
  identity.expires = ReadExpiry(TextAt(*status, "expirationTimestamp"));
  if (identity.certificate.empty() != identity.key.empty()) {
    return Fail(Blame::kCaller, "its certificate and its key must come together");
  }
  if (identity.token.empty() && identity.certificate.empty()) {
    return Fail(Blame::kCaller, "its ExecCredential has neither a token nor a certificate");
  }
  return identity;
}

Result<KubeIdentity> RunExecPlugin(const ExecPlugin& plugin, const KubeAccess& access,
                                   Duration patience, const std::stop_token& stop) {
  const std::string who = fmt::format("exec plugin {}", Shown(plugin.command));
  if (plugin.interactive_mode == "Always") {
    return Fail(Blame::kCaller, "{} needs a terminal; use a token instead (kubectl create token)",
                who);
  }
  auto identity = Run(plugin, access, patience, stop);
  if (!identity) return std::unexpected(std::move(identity).error().In(who));
  return identity;
}

}  // namespace fathom
