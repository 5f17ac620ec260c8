#include "app/demo_side.h"

#include <future>
#include <thread>

#include "base/file.h"

namespace fathom {
namespace {

constexpr size_t kHistory = 140;
// Some hundred words that everybody's conversations begin with, and an opening of their own.
constexpr size_t kSystemWords = 300;
constexpr size_t kOpeningWords = 1500;

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// A second without a sample repeats the one before.
void PushMedian(std::vector<double>& history, const LatencyHistogram& recent) {
  if (recent.count() == 0 && history.empty()) return;
  const double value = recent.count() > 0 ? Seconds(recent.Percentile(50)) : history.back();
  if (history.size() == kHistory) history.erase(history.begin());
  history.push_back(value);
}

// Both sides get the same: people, words and pauses depend on the options alone.
ConversationOptions ConversationsOf(const Settings& settings, const Frontend& router) {
  ConversationOptions options;
  options.endpoint.url = *Url::Parse("http://" + router.address().ToString());
  options.people = static_cast<size_t>(settings.Integer("concurrency"));
  options.system_words = kSystemWords;
  options.opening_words = kOpeningWords;
  options.think = settings.Time("think-time");
  options.sessions = settings.Flag("sessions");
  return options;
}

}  // namespace

// Has its conversations on a thread of its own and lets others look at the report.
class DemoSide::People {
 public:
  explicit People(const ConversationOptions& options) : conversations_(loop_, resolver_, options) {
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

DemoSide::~DemoSide() = default;

Result<std::unique_ptr<DemoSide>> DemoSide::Start(const Settings& settings, const std::string& mode,
                                                  int64_t port, Log& log) {
  std::unique_ptr<DemoSide> side(new DemoSide());
  TRY_VOID(side->StartMocks(settings, log));
  TRY_VOID(side->StartRouter(mode, port, log));
  side->AwaitWorkers();
  side->moment_.router_mode = mode;
  side->moment_.url = "http://" + side->router_->address().ToString();
  return side;
}

Result<void> DemoSide::StartMocks(const Settings& settings, Log& log) {
  for (int64_t i = 0; i < settings.Integer("workers"); ++i) {
    MockOptions options;
    options.name = "mock-" + std::to_string(i);
    options.profile = settings.Choice("profile");
    options.speedup = settings.Number("speedup");
    options.kv_events.on = true;
    options.num_blocks = static_cast<uint32_t>(settings.Integer("num-blocks"));
    TRY(auto mock, MockServer::Start(options, *Address::Numeric("127.0.0.1", 0), 1, log));
    mocks_.push_back(std::move(mock));
  }
  return {};
}

// The router gets its settings as an operator would give them.
Result<void> DemoSide::StartRouter(const std::string& mode, int64_t port, Log& log) {
  std::string urls;
  for (const auto& mock : mocks_) urls += mock->url() + ",";
  const std::string port_text = std::to_string(port);
  const std::vector<std::string_view> args = {
      "--port",    port_text, "--router-mode",           mode, "--worker-urls", urls,
      "--threads", "1",       "--health-check-interval", "0.2"};
  TRY(const Settings serve, LoadSettings(Command::kServe, args, Environment(), ReadFile));
  TRY(router_, Frontend::Create(serve, Environment(), log));
  router_->Start();
  return {};
}

// So that the first requests do not fail.
void DemoSide::AwaitWorkers() const {
  for (int i = 0; i < 500 && router_->fleet().Current()->routable() < mocks_.size(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void DemoSide::BeginConversations(const Settings& settings) {
  people_ = new People(ConversationsOf(settings, *router_));
}

const SideMoment& DemoSide::Look(Duration elapsed) {
  report_ = people_->Report();
  moment_.turns = report_.completed;
  moment_.errors = report_.errors;
  if (elapsed - remembered_at_ >= std::chrono::seconds(1)) Remember(elapsed);
  moment_.first_turn_p50 = report_.first_turn.Percentile(50);
  moment_.first_turn_p90 = report_.first_turn.Percentile(90);
  moment_.follow_up_p50 = report_.follow_up.Percentile(50);
  moment_.follow_up_p90 = report_.follow_up.Percentile(90);
  moment_.next_token_p50 = report_.between_tokens.Percentile(50);
  moment_.reused = Share(report_.cached_tokens, report_.prompt_tokens);
  LookAtWorkers();
  LookAtFeeds();
  return moment_;
}

const SideMoment& DemoSide::Conclude(Duration elapsed) {
  Look(elapsed);
  moment_.turns_per_second = static_cast<double>(report_.completed) / Seconds(elapsed);
  moment_.tokens_per_second = static_cast<double>(report_.tokens) / Seconds(elapsed);
  return moment_;
}

void DemoSide::Remember(Duration elapsed) {
  const double seconds = Seconds(elapsed - remembered_at_);
  moment_.turns_per_second =
      static_cast<double>(report_.completed - remembered_.completed) / seconds;
  moment_.tokens_per_second = static_cast<double>(report_.tokens - remembered_.tokens) / seconds;
  PushMedian(moment_.follow_up_history, report_.follow_up.Since(remembered_.follow_up));
  remembered_ = report_;
  remembered_at_ = elapsed;
}

void DemoSide::LookAtWorkers() {
  moment_.workers.clear();
  for (const auto& mock : mocks_) {
    const EngineStatistics engine = mock->statistics();
    WorkerMoment worker{.name = mock->name()};
    worker.running = engine.running;
    worker.waiting = engine.waiting;
    worker.served = mock->counts().completed.load(std::memory_order_relaxed);
    worker.cache_used = engine.cache_usage;
    worker.reused = Share(engine.counters.cached_tokens, engine.counters.prompt_tokens);
    moment_.workers.push_back(std::move(worker));
  }
}

void DemoSide::LookAtFeeds() {
  moment_.known_blocks = 0;
  moment_.event_batches = 0;
  for (const auto& feed : router_->feeds().All()) {
    moment_.known_blocks += feed->blocks.Get();
    moment_.event_batches += feed->batches.Get();
  }
}

}  // namespace fathom
