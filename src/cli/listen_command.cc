// fathom listen: prints the KV events of engines as they arrive.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "cli/command.h"
#include "diagnose/listen/event_listener.h"
#include "io/net/signals.h"

namespace fathom {
namespace {

constexpr Duration kListenLook = std::chrono::milliseconds(20);

void ListenNote(std::string_view what) { fmt::print(stderr, "fathom listen: {}\n", what); }

// Standard output, unbuffered.
class Output {
 public:
  void Write(std::string_view text) {
    while (!text.empty() && problem_ == 0) {
      const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
      if (written >= 0) {
        text.remove_prefix(static_cast<size_t>(written));
      } else if (errno != EINTR) {
        problem_ = errno;
      }
    }
  }
  // errno of the first failure; 0: none.
  int problem() const { return problem_; }

 private:
  int problem_ = 0;
};

bool IsPublisher(std::string_view text) {
  return text.starts_with("tcp://") || text.starts_with("ipc://");
}

bool IsWorker(std::string_view text) {
  return text.starts_with("http://") || text.starts_with("https://");
}

Result<void> CheckEndpoint(const std::string& endpoint) {
  if (IsWorker(endpoint)) {
    const auto url = Url::Parse(endpoint);
    if (!url) return Fail(Blame::kCaller, "{}", url.error().what);
    return {};
  }
  if (!IsPublisher(endpoint)) {
    return Fail(Blame::kCaller,
                "'{}' is not an endpoint: write tcp://HOST:PORT or ipc://PATH of a publisher, or "
                "http://HOST:PORT of a worker",
                endpoint);
  }
  if (WithHost(endpoint, "") != endpoint) {
    return Fail(Blame::kCaller,
                "'{}' has no host to connect to; use --bind {} to wait for "
                "engines",
                endpoint, endpoint);
  }
  if (endpoint.starts_with("tcp://") && !WithPortOffset(endpoint, 1) &&
      !endpoint.ends_with(":65535")) {
    return Fail(Blame::kCaller, "'{}' must be tcp://HOST:PORT", endpoint);
  }
  return {};
}

Result<void> CheckReplay(const ListenOptions& o) {
  const auto publishers = std::ranges::count_if(o.endpoints, IsPublisher);
  if (!o.replay_endpoint.empty() && publishers != 1) {
    return Fail(Blame::kCaller,
                "--replay-endpoint belongs to exactly one tcp:// or ipc:// endpoint");
  }
  if (!o.replay_endpoint.empty() && !IsPublisher(o.replay_endpoint)) {
    return Fail(Blame::kCaller, "--replay-endpoint '{}' must be tcp://HOST:PORT or ipc://PATH",
                o.replay_endpoint);
  }
  if (o.replay && publishers > 0 && o.replay_endpoint.empty()) {
    return Fail(Blame::kCaller,
                "--replay: a publisher does not report its replay endpoint; give "
                "--replay-endpoint, or http://HOST:PORT of the worker");
  }
  return {};
}

Result<ListenOptions> ListenOptionsOf(const Settings& s) {
  ListenOptions o;
  o.endpoints = s.List("endpoints");
  o.bind = s.Text("bind");
  o.topic = s.Text("topic");
  o.replay_endpoint = s.Text("replay-endpoint");
  o.replay = s.Flag("replay") || !o.replay_endpoint.empty();
  o.drain = s.Flag("drain");
  o.api_key = s.Secret("api-key");
  o.interval = s.Time("interval");
  o.limit = s.Time("for");
  o.wait = s.Time("wait");
  o.count = static_cast<uint64_t>(s.Integer("count"));
  if (o.endpoints.empty() && o.bind.empty()) {
    return Fail(Blame::kCaller,
                "no endpoint given: fathom listen tcp://HOST:PORT of a publisher, or "
                "http://HOST:PORT of a worker");
  }
  for (const std::string& endpoint : o.endpoints) TRY_VOID(CheckEndpoint(endpoint));
  if (!o.bind.empty() && !IsPublisher(o.bind)) {
    return Fail(Blame::kCaller, "--bind '{}' must be an endpoint such as tcp://*:5557", o.bind);
  }
  TRY_VOID(CheckReplay(o));
  return o;
}

std::unique_ptr<EventView> ViewOf(const Settings& settings) {
  const bool tokens = settings.Flag("show-tokens");
  if (settings.Flag("json")) return std::make_unique<JsonView>(tokens);
  const bool color = ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  return std::make_unique<TextView>(tokens, color);
}

// The first signal ends the listener. The second one ends the process, because a slow reader of our
// output can block the listener.
void WatchSignals(const std::stop_token& stop, Loop& loop, EventListener& listener) {
  bool told = false;
  while (!stop.stop_requested()) {
    if (WaitForSignal(kListenLook) == 0) continue;
    if (told) std::_Exit(kExitFailed);
    told = true;
    loop.Post([&listener] { listener.Stop(kExitFine); });
  }
}

}  // namespace

int RunListen(const Settings& settings) {
  const auto options = ListenOptionsOf(settings);
  if (!options) {
    ListenNote(options.error().what);
    return kExitUsage;
  }
  const auto view = ViewOf(settings);
  Output output;
  EventListener* listener = nullptr;
  const auto print = [&](std::string_view text) {
    output.Write(text);
    if (output.problem() != 0) listener->Stop(kExitFailed);
  };
  EventReport report(*view, print, WallClock());
  // Never destroyed: its streams still wait when the command ends.
  Loop& loop = *new Loop;
  listener = new EventListener(loop, *options, report, ListenNote);
  listener->Start();
  {
    const std::jthread watcher(
        [&](const std::stop_token& stop) { WatchSignals(stop, loop, *listener); });
    loop.Run();
  }
  report.Conclude(WallClock());
  if (output.problem() == EPIPE) return kExitFine;  // the reader, such as head, closed it
  if (output.problem() != 0) ListenNote(std::strerror(output.problem()));
  return listener->status();
}

}  // namespace fathom
