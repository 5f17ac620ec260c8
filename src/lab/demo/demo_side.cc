#include "lab/demo/demo_side.h"

#include <future>
#include <thread>

#include "base/file.h"
#include "router/fleet/trust_keeper.h"

namespace fathom {
namespace {

constexpr size_t kHistory = 200;  // seconds, as many as the widest picture has columns
// Some hundred words that everybody's conversations begin with, and an opening of their own.
constexpr size_t kSystemWords = 300;
constexpr size_t kOpeningWords = 1500;

// Lost batches are noticed at the next one, so that the worker is doubted within a second or two.
constexpr std::string_view kLoseEvents = R"({"kv_lose_every":2})";
// The blocks that the engine still holds were announced in batches that are lost, and it does not
// announce them again. Its cache is emptied, as by a restart: only then can the index be complete.
constexpr std::string_view kRepairEvents = R"({"kv_lose_every":0,"prefix_caching":false})";
constexpr std::string_view kCacheAgain = R"({"prefix_caching":true})";

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// A second without a sample repeats the one before.
void Push(std::vector<double>& history, bool sampled, double value) {
  if (!sampled && history.empty()) return;
  if (!sampled) value = history.back();
  if (history.size() == kHistory) history.erase(history.begin());
  history.push_back(value);
}

LatencyMoment LatencyOf(const LatencyHistogram& histogram) {
  return {.count = histogram.count(),
          .p50 = histogram.Percentile(50),
          .p90 = histogram.Percentile(90),
          .p99 = histogram.Percentile(99)};
}

TokenCounts TokensOf(const EngineStatistics& engine) {
  return {.prompt = engine.counters.prompt_tokens,
          .cached = engine.counters.cached_tokens,
          .recomputed = engine.counters.recomputed_tokens};
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
  side->moment_.uses_events = mode == "kv" && settings.Choice("profile") != kPaced;
  return side;
}

Result<void> DemoSide::StartMocks(const Settings& settings, Log& log) {
  // Shared, so that a worker also knows what the others of this side have computed.
  const auto ledger = std::make_shared<PrefixLedger>();
  for (int64_t i = 0; i < settings.Integer("workers"); ++i) {
    MockOptions options;
    options.ledger = ledger;
    options.name = "mock-" + std::to_string(i);
    options.profile = settings.Choice("profile");
    options.speedup = settings.Number("speedup");
    options.kv_events.on = true;
    options.num_blocks = static_cast<uint32_t>(settings.Integer("num-blocks"));
    TRY(auto mock, MockServer::Start(options, *Address::Numeric("127.0.0.1", 0), 1, log));
    mocks_.push_back(std::move(mock));
  }
  counts_.resize(mocks_.size());
  windows_.resize(mocks_.size());
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
  LookAtPeople();
  LookAtFeeds();
  LookAtWorkers();
  if (elapsed - remembered_at_ >= std::chrono::seconds(1)) Remember(elapsed);
  if (!moment_.workers.empty()) {
    moment_.fault.Look(moment_.workers[broken_].cause, moment_.recomputed, elapsed);
  }
  return moment_;
}

void DemoSide::LookAtPeople() {
  report_ = people_->Report();
  moment_.turns = report_.completed;
  moment_.errors = report_.errors;
  moment_.first_turn = LatencyOf(report_.first_turn);
  moment_.follow_up = LatencyOf(report_.follow_up);
  moment_.next_token_p50 = report_.between_tokens.Percentile(50);
  moment_.reused = Share(report_.cached_tokens, report_.prompt_tokens);
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
  const LatencyHistogram recent = report_.follow_up.Since(remembered_.follow_up);
  Push(moment_.follow_up_history, recent.count() > 0, Seconds(recent.Percentile(50)));
  TokenCounts all;
  for (size_t i = 0; i < mocks_.size(); ++i) {
    all += counts_[i];
    windows_[i].Remember(counts_[i], elapsed);
  }
  const TokenCounts second = all - remembered_tokens_;
  Push(moment_.reuse_history, second.prompt > 0, second.reused());
  remembered_tokens_ = all;
  remembered_ = report_;
  remembered_at_ = elapsed;
}

void DemoSide::LookAtWorkers() {
  moment_.workers.clear();
  moment_.recomputed = 0;
  TokenCounts lately;
  for (size_t i = 0; i < mocks_.size(); ++i) {
    const MockServer& mock = *mocks_[i];
    const EngineStatistics engine = mock.statistics();
    counts_[i] = TokensOf(engine);
    const TokenCounts tokens = windows_[i].Lately(counts_[i]);
    lately += tokens;
    moment_.recomputed += counts_[i].recomputed;
    WorkerMoment worker{.name = mock.name()};
    worker.running = engine.running;
    worker.waiting = engine.waiting;
    worker.served = mock.counts().completed.load(std::memory_order_relaxed);
    worker.cache_used = engine.cache_usage;
    worker.asked_lately = tokens.prompt > 0;
    worker.reused = tokens.reused();
    LookAtTrust(worker, mock);
    moment_.workers.push_back(std::move(worker));
  }
  moment_.reused_lately = lately.reused();
  moment_.recomputed_lately = lately.recomputed;
}

void DemoSide::LookAtTrust(WorkerMoment& worker, const MockServer& mock) const {
  const WorkerId id = WorkerId::OfUrl(mock.url());
  for (const auto& feed : router_->feeds().All()) {
    if (feed->worker == id) worker.known_blocks = feed->blocks.Get();
  }
  const TrustKeeper* const keeper = router_->context().trust;
  if (!moment_.uses_events || keeper == nullptr) return;
  const Trust trust = keeper->StandingOf(id, 0).trust;
  worker.trust = Name(trust.state);
  if (trust.state == TrustState::kDoubted) worker.cause = Name(trust.cause);
}

void DemoSide::LookAtFeeds() {
  moment_.known_blocks = 0;
  moment_.event_batches = 0;
  for (const auto& feed : router_->feeds().All()) {
    moment_.known_blocks += feed->blocks.Get();
    moment_.event_batches += feed->batches.Get();
  }
}

// The one whose cache is used most: its loss shows best.
size_t DemoSide::Busiest() const {
  size_t busiest = 0;
  uint64_t most = 0;
  for (size_t i = 0; i < mocks_.size(); ++i) {
    const uint64_t tokens = windows_[i].Lately(counts_[i]).cached;
    if (tokens <= most) continue;
    most = tokens;
    busiest = i;
  }
  return busiest;
}

void DemoSide::Break(Duration elapsed) {
  if (!moment_.uses_events || moment_.fault.losing()) return;
  // While the last one is still doubted, the next fault is its own: one worker is enough.
  if (moment_.fault.stage != FaultStage::kRepaired) broken_ = Busiest();
  mocks_[broken_]->AdoptFaults(kLoseEvents);
  moment_.fault.Break(mocks_[broken_]->name(), moment_.reused_lately, moment_.recomputed, elapsed);
}

void DemoSide::Repair(Duration elapsed) {
  if (!moment_.fault.losing()) return;
  mocks_[broken_]->AdoptFaults(kRepairEvents);
  mocks_[broken_]->AdoptFaults(kCacheAgain);
  moment_.fault.Repair(elapsed);
}

}  // namespace fathom
