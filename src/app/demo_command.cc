// The router in front of mock engines, in one process, with a load and a live view.
#include <unistd.h>

#include <future>
#include <thread>

#include "app/command.h"
#include "app/demo_view.h"
#include "app/frontend.h"
#include "load/load.h"
#include "mock/mock_server.h"

namespace fathom {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(250);
constexpr size_t kHistory = 120;

using MockServers = std::vector<std::unique_ptr<MockServer>>;

Result<MockServers> StartMocks(const Settings& settings, Log& log) {
  MockServers mocks;
  for (int64_t i = 0; i < settings.Integer("workers"); ++i) {
    MockOptions options;
    options.name = "mock-" + std::to_string(i);
    options.first_token_delay = settings.Time("first-token-delay");
    options.token_interval = settings.Time("token-interval");
    TRY(auto mock, MockServer::Start(options, *Address::Numeric("127.0.0.1", 0), 1, log));
    mocks.push_back(std::move(mock));
  }
  return mocks;
}

// The router gets its settings as an operator would give them.
Result<std::unique_ptr<Frontend>> StartRouter(const Settings& settings, const MockServers& mocks,
                                              Log& log) {
  const std::string port = std::to_string(settings.Integer("port"));
  std::string urls;
  for (const auto& mock : mocks) urls += mock->url() + ",";
  const std::vector<std::string_view> args = {
      "--port",        port, "--router-mode",           settings.Choice("router-mode"),
      "--worker-urls", urls, "--health-check-interval", "0.2"};
  TRY(const Settings serve, LoadSettings(Command::kServe, args, Environment(), ReadFile));
  TRY(auto router, Frontend::Create(serve, Environment(), log));
  router->Start();
  return router;
}

// Waits until every mock can be routed to, so that the first requests do not fail.
void AwaitWorkers(const Frontend& router, size_t count) {
  for (int i = 0; i < 500 && router.fleet().Current()->routable() < count; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

LoadOptions LoadOptionsOf(const Settings& settings, const Frontend& router) {
  LoadOptions options;
  options.endpoint.url = *Url::Parse("http://" + router.address().ToString());
  options.concurrency = static_cast<size_t>(settings.Integer("concurrency"));
  options.duration = std::chrono::hours(24 * 365);
  return options;
}

// Runs the load on a thread of its own and lets others look at its report.
class BackgroundLoad {
 public:
  explicit BackgroundLoad(const LoadOptions& options) : generator_(loop_, resolver_, options) {
    loop_.Post([this] { Spawn(generator_.Run()); });
    thread_ = std::jthread([this] { loop_.Run(); });
  }
  ~BackgroundLoad() { loop_.Stop(); }

  LoadReport Report() {
    std::promise<LoadReport> report;
    loop_.Post([&] { report.set_value(generator_.report()); });
    return report.get_future().get();
  }

 private:
  Loop loop_;
  Resolver resolver_;
  LoadGenerator generator_;
  std::jthread thread_;
};

// Turns reports into what the screen shows: rates and latencies of the last moments.
class Observer {
 public:
  Observer(const Frontend& router, const MockServers& mocks, std::string mode)
      : router_(router), mocks_(mocks), mode_(std::move(mode)) {}

  const DemoSnapshot& Look(const LoadReport& report, Duration elapsed) {
    view_.elapsed = elapsed;
    view_.url = "http://" + router_.address().ToString();
    view_.router_mode = mode_;
    view_.requests = report.completed;
    view_.errors = report.error_count();
    const double seconds = Seconds(elapsed - last_elapsed_);
    const LatencyHistogram recent = report.first_byte.Since(last_.first_byte);
    if (seconds >= 1) Remember(report, recent, seconds, elapsed);
    view_.ttft_p50 = report.first_byte.Percentile(50);
    view_.ttft_p90 = report.first_byte.Percentile(90);
    view_.itl_p50 = report.between_chunks.Percentile(50);
    LookAtWorkers(report.completed);
    return view_;
  }

  // For the summary: rates over the whole run instead of the last second.
  const DemoSnapshot& Conclude(const LoadReport& report, Duration elapsed) {
    Look(report, elapsed);
    view_.requests_per_second = static_cast<double>(report.completed) / Seconds(elapsed);
    view_.tokens_per_second = static_cast<double>(report.chunks) / Seconds(elapsed);
    return view_;
  }

 private:
  void Remember(const LoadReport& report, const LatencyHistogram& recent, double seconds,
                Duration elapsed) {
    view_.requests_per_second = static_cast<double>(report.completed - last_.completed) / seconds;
    view_.tokens_per_second = static_cast<double>(report.chunks - last_.chunks) / seconds;
    Push(view_.request_history, view_.requests_per_second);
    Push(view_.ttft_history, Seconds(recent.Percentile(50)));
    last_ = report;
    last_elapsed_ = elapsed;
  }

  static void Push(std::vector<double>& history, double value) {
    if (history.size() == kHistory) history.erase(history.begin());
    history.push_back(value);
  }

  void LookAtWorkers(uint64_t requests) {
    view_.workers.clear();
    for (const auto& mock : mocks_) {
      const MockCounts& counts = mock->counts();
      const uint64_t served = counts.completed.load(std::memory_order_relaxed);
      view_.workers.push_back(
          {.name = mock->name(),
           .in_flight = counts.in_flight.load(std::memory_order_relaxed),
           .served = served,
           .share =
               requests == 0 ? 0 : static_cast<double>(served) / static_cast<double>(requests)});
    }
  }

  const Frontend& router_;
  const MockServers& mocks_;
  const std::string mode_;
  DemoSnapshot view_;
  LoadReport last_;
  Duration last_elapsed_{};
};

}  // namespace

int RunDemo(const Settings& settings, Log& log) {
  if (settings.Choice("router-mode") == "direct") {
    log.Error("router-mode direct needs a client that names its worker; the demo has none");
    return kExitUsage;
  }
  const auto mocks = StartMocks(settings, log);
  if (!mocks) {
    log.Error(mocks.error().what);
    return kExitFailed;
  }
  const auto router = StartRouter(settings, *mocks, log);
  if (!router) {
    log.Error(router.error().what);
    return kExitUsage;
  }
  AwaitWorkers(**router, mocks->size());

  DemoScreen screen(STDOUT_FILENO);
  Observer observer(**router, *mocks, settings.Choice("router-mode"));
  BackgroundLoad load(LoadOptionsOf(settings, **router));
  const TimePoint begun = std::chrono::steady_clock::now();
  const auto elapsed = [begun] { return Duration(std::chrono::steady_clock::now() - begun); };
  const int64_t seconds = settings.Integer("seconds");
  const Duration limit = seconds == 0 ? Duration::max() : std::chrono::seconds(seconds);
  while (elapsed() < limit && WaitForSignal(std::min(kTick, limit - elapsed())) == 0) {
    screen.Draw(observer.Look(load.Report(), elapsed()));
  }
  const LoadReport report = load.Report();
  screen.Finish(observer.Conclude(report, elapsed()));
  return report.completed > 0 && report.error_count() == 0 ? kExitFine : kExitFailed;
}

}  // namespace fathom
