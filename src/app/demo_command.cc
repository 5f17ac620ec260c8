// The router in front of mock engines, in one process, with a load and a live view.
#include <unistd.h>

#include <future>
#include <thread>

#include "app/command.h"
#include "app/demo_view.h"
#include "app/frontend.h"
#include "load/conversations.h"
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
    options.profile = settings.Choice("profile");
    options.speedup = settings.Number("speedup");
    options.kv_events.on = true;
    options.num_blocks = static_cast<uint32_t>(settings.Integer("num-blocks"));
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

ConversationOptions ConversationsOf(const Settings& settings, const Frontend& router) {
  ConversationOptions options;
  options.endpoint.url = *Url::Parse("http://" + router.address().ToString());
  options.people = static_cast<size_t>(settings.Integer("concurrency"));
  options.think = settings.Time("think-time");
  options.sessions = settings.Flag("sessions");
  return options;
}

// Runs the conversations on a thread of their own and lets others look at their report.
class BackgroundLoad {
 public:
  explicit BackgroundLoad(const ConversationOptions& options)
      : conversations_(loop_, resolver_, options) {
    loop_.Post([this] { conversations_.Start(); });
    thread_ = std::jthread([this] { loop_.Run(); });
  }

  ConversationReport Report() {
    std::promise<ConversationReport> report;
    loop_.Post([&] { report.set_value(conversations_.report()); });
    return report.get_future().get();
  }

 private:
  Loop loop_;
  Resolver resolver_;
  Conversations conversations_;
  std::jthread thread_;
};

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Turns reports into what the screen shows.
class Observer {
 public:
  Observer(const Frontend& router, const MockServers& mocks, std::string mode)
      : router_(router), mocks_(mocks) {
    view_.url = "http://" + router.address().ToString();
    view_.router_mode = std::move(mode);
  }

  const DemoSnapshot& Look(const ConversationReport& report, Duration elapsed) {
    view_.elapsed = elapsed;
    view_.requests = report.completed;
    view_.errors = report.errors;
    if (elapsed - last_elapsed_ >= std::chrono::seconds(1)) Remember(report, elapsed);
    view_.first_turn_p50 = report.first_turn.Percentile(50);
    view_.first_turn_p90 = report.first_turn.Percentile(90);
    view_.follow_up_p50 = report.follow_up.Percentile(50);
    view_.follow_up_p90 = report.follow_up.Percentile(90);
    view_.itl_p50 = report.between_tokens.Percentile(50);
    view_.reused = Share(report.cached_tokens, report.prompt_tokens);
    LookAtWorkers();
    LookAtFeeds();
    return view_;
  }

  // For the summary: rates over the whole run instead of the last second.
  const DemoSnapshot& Conclude(const ConversationReport& report, Duration elapsed) {
    Look(report, elapsed);
    view_.requests_per_second = static_cast<double>(report.completed) / Seconds(elapsed);
    view_.tokens_per_second = static_cast<double>(report.tokens) / Seconds(elapsed);
    return view_;
  }

 private:
  void Remember(const ConversationReport& report, Duration elapsed) {
    const double seconds = Seconds(elapsed - last_elapsed_);
    view_.requests_per_second = static_cast<double>(report.completed - last_.completed) / seconds;
    view_.tokens_per_second = static_cast<double>(report.tokens - last_.tokens) / seconds;
    Push(view_.request_history, view_.requests_per_second);
    PushMedian(view_.first_turn_history, report.first_turn.Since(last_.first_turn));
    PushMedian(view_.follow_up_history, report.follow_up.Since(last_.follow_up));
    last_ = report;
    last_elapsed_ = elapsed;
  }

  static void Push(std::vector<double>& history, double value) {
    if (history.size() == kHistory) history.erase(history.begin());
    history.push_back(value);
  }

  // A second without a sample repeats the one before.
  static void PushMedian(std::vector<double>& history, const LatencyHistogram& recent) {
    if (recent.count() > 0) Push(history, Seconds(recent.Percentile(50)));
    if (recent.count() == 0 && !history.empty()) Push(history, history.back());
  }

  void LookAtWorkers() {
    view_.workers.clear();
    for (const auto& mock : mocks_) {
      const EngineStatistics engine = mock->statistics();
      DemoWorker worker{.name = mock->name()};
      worker.running = engine.running;
      worker.waiting = engine.waiting;
      worker.served = mock->counts().completed.load(std::memory_order_relaxed);
      worker.cache_used = engine.cache_usage;
      worker.reused = Share(engine.counters.cached_tokens, engine.counters.prompt_tokens);
      view_.workers.push_back(std::move(worker));
    }
  }

  void LookAtFeeds() {
    view_.known_blocks = 0;
    view_.event_batches = 0;
    for (const auto& feed : router_.feeds().All()) {
      view_.known_blocks += feed->blocks.Get();
      view_.event_batches += feed->batches.Get();
    }
  }

  const Frontend& router_;
  const MockServers& mocks_;
  DemoSnapshot view_;
  ConversationReport last_;
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
  // Never destroyed: its conversations are in the middle of something when the demo ends.
  BackgroundLoad& load = *new BackgroundLoad(ConversationsOf(settings, **router));
  const TimePoint begun = std::chrono::steady_clock::now();
  const auto elapsed = [begun] { return Duration(std::chrono::steady_clock::now() - begun); };
  const int64_t seconds = settings.Integer("seconds");
  const Duration limit = seconds == 0 ? Duration::max() : std::chrono::seconds(seconds);
  while (elapsed() < limit && WaitForSignal(std::min(kTick, limit - elapsed())) == 0) {
    screen.Draw(observer.Look(load.Report(), elapsed()));
  }
  const ConversationReport report = load.Report();
  screen.Finish(observer.Conclude(report, elapsed()));
  if (report.errors > 0) log.Error("Some turns failed", {{"first_problem", report.first_problem}});
  return report.completed > 0 && report.errors == 0 ? kExitFine : kExitFailed;
}

}  // namespace fathom
