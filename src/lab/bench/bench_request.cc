#include "lab/bench/bench_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/exit_status.h"
#include "base/random.h"
#include "codec/json.h"
#include "lab/bench/allocated_bytes.h"
#include "lab/bench/bench_settings.h"
#include "lab/bench/median.h"
#include "router/gateway/prompt_tokens.h"
#include "router/gateway/request_fields.h"
#include "router/routing/reservation.h"

namespace fathom {
namespace {

constexpr std::string_view kRequestUsage =
    "usage: fathom bench request [tokens=8192] [ranks=8] [block-size=16] [runs=2000]\n";

struct RequestBenchPlan {
  uint64_t tokens = 8192;
  uint64_t ranks = 8;
  uint64_t block_size = 16;
  uint64_t runs = 2000;
};

// Prompts are ids here; nobody is asked.
class NoSource final : public TokenSource {
 public:
  Task<TokenAnswer> Tokenize(const TokenQuestion&, TimePoint) override {
    co_return std::unexpected(TokenFailure::kUnsupported);
  }
  void Miss(std::string_view, TokenFailure, TimePoint) override {}
};

std::vector<TokenId> RequestTokens(uint64_t count) {
  Random random(1);
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random.Below(128'000));
  return tokens;
}

std::string BodyOf(const std::vector<TokenId>& tokens) {
  JsonWriter w;
  w.BeginObject().Key("model").String("model").Key("stream").Bool(true);
  w.Key("max_tokens").Unsigned(128).Key("prompt").BeginArray();
  for (const TokenId token : tokens) w.Unsigned(token);
  w.EndArray().EndObject();
  return w.Take();
}

enum RequestStage { kParseStage, kIdsStage, kDecideStage, kBookStage, kRequestStages };
constexpr std::string_view kRequestStageNames[kRequestStages] = {"parse", "ids",
                                                                 "hash_lookup_choose", "book"};

// A fleet whose ranks hold the prompt to different depths, and one request after the other.
class RequestPath {
 public:
  explicit RequestPath(const RequestBenchPlan& plan)
      : plan_(plan), tokens_(RequestTokens(plan.tokens)), body_(BodyOf(tokens_)) {
    for (uint64_t i = 0; i < plan.ranks; ++i) AddWorker(i);
  }

  void Run() {
    for (uint64_t i = 0; i < plan_.runs; ++i) Once();
  }
  void ParseDocument() {
    for (uint64_t i = 0; i < plan_.runs; ++i) {
      const TimePoint begun = Now();
      const auto json = Json::Parse(body_);
      document_.push_back(Now() - begun);
      sink_ += json->object()->size();
    }
  }

  std::string Report();

 private:
  static TimePoint Now() { return std::chrono::steady_clock::now(); }

  void AddWorker(uint64_t number) {
    const std::string url = fmt::format("http://worker-{}", number);
    workers_.push_back(std::make_shared<Worker>(WorkerSpec{.url = url}, BreakerOptions{}));
    places_.push_back({workers_.back().get(), &workers_.back()->ranks.only()});
    const BlockShape shape{.size = static_cast<uint32_t>(plan_.block_size)};
    holdings_.push_back(index_.Open(places_.back().label(), shape, seat_));
    // The first rank holds all of it, the last an eighth or so.
    const size_t blocks = shape.BlocksIn(tokens_.size()) * (plan_.ranks - number) / plan_.ranks;
    std::vector<uint64_t> keys;
    const auto held = std::span(tokens_).first(blocks * plan_.block_size);
    KeyChain(held, shape, kKeySeed, keys).All();
    keys.resize(blocks);
    holdings_.back()->Store({.parent = std::nullopt, .hashes = keys, .tokens = held}, Now());
  }

  void Once() {
    const auto allocated = AllocatedBytesOfThisThread();
    const TimePoint begun = Now();
    const auto fields = ReadRequestFields(body_);
    const TimePoint parsed = Now();
    auto reading = reader_.Read(*fields, Route::kCompletions, fleet_);
    const PromptTokens prompt = reading.await_resume();  // ids need no waiting
    const TimePoint read = Now();
    const RouteQuestion question{.tokens = prompt.tokens, .seed = prompt.seed, .weights = {}};
    const auto choice = steering_.Decide(question, places_, read, Steering::Patience::kMayWait);
    const TimePoint decided = Now();
    {
      Reservation booked(steering_, choice, question, Reservation::Answer::kStreamed, decided);
      booked.FirstByte(decided);
    }
    const TimePoint ended = Now();
    if (allocated) allocated_.push_back(*AllocatedBytesOfThisThread() - *allocated);
    Take({parsed - begun, read - parsed, decided - read, ended - decided});
  }

  void Take(const std::array<Duration, kRequestStages>& took) {
    Duration whole{};
    for (size_t i = 0; i < kRequestStages; ++i) {
      stages_[i].push_back(took[i]);
      whole += took[i];
    }
    whole_.push_back(whole);
  }

  const RequestBenchPlan plan_;
  const std::vector<TokenId> tokens_;
  const std::string body_;
  CacheIndex index_{size_t{4} << 30, 1};
  Epochs::Seat seat_{index_.epochs()};
  std::vector<std::shared_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<RankHoldings>> holdings_;
  std::vector<Place> places_;
  SteeringWorld world_{SteeringOptions{}, 1};
  Steering steering_{world_, DepthsOf(&index_), 1};
  const std::shared_ptr<const FleetSnapshot> fleet_ =
      std::make_shared<FleetSnapshot>(std::vector<Member>());
  Registry registry_;
  TokenizeMetrics metrics_{registry_};
  const ModelLibrary models_;
  TokenCache cache_{0, metrics_.cache_bytes};
  PrefixCache prefixes_{0, 0, metrics_.prefix_bytes};
  SideWork side_work_{0};
  Log log_{2, LogLevel::kOff};
  TokenComplaints complaints_{log_};
  TokenizerBuilds builds_{log_};
  RequestMemory memory_{uint64_t{4} << 30};
  Loop loop_;
  PromptReader reader_{TokenizeOptions{}, loop_, std::make_shared<NoSource>(),
                       PromptShelves{models_, cache_, prefixes_, side_work_, metrics_, complaints_,
                                     memory_, builds_}};
  std::array<std::vector<Duration>, kRequestStages> stages_;
  std::vector<Duration> whole_;
  std::vector<Duration> document_;
  std::vector<uint64_t> allocated_;
  uint64_t sink_ = 0;
};

double Microseconds(Duration duration) { return Seconds(duration) * 1e6; }

std::string RequestPath::Report() {
  JsonWriter w;
  w.BeginObject().Key("tokens").Unsigned(plan_.tokens).Key("ranks").Unsigned(plan_.ranks);
  w.Key("body_bytes").Unsigned(body_.size());
  w.Key("request_microseconds").Number(Microseconds(Median(whole_)));
  w.Key("stages").BeginObject();
  for (size_t i = 0; i < kRequestStages; ++i) {
    w.Key(kRequestStageNames[i]).Number(Microseconds(Median(stages_[i])));
  }
  w.EndObject();
  w.Key("document_parser_microseconds").Number(Microseconds(Median(document_)));
  w.Key("times_faster_than_document_parser")
      .Number(Seconds(Median(document_)) / Seconds(Median(whole_)));
  w.Key("allocated_bytes");
  allocated_.empty() ? w.Null() : w.Unsigned(Median(allocated_));
  w.EndObject();
  return w.Take();
}

}  // namespace

int RunBenchRequest(std::span<const std::string_view> args) {
  RequestBenchPlan plan;
  constexpr double kMost = 1 << 24;
  const BenchSetting settings[] = {{"tokens", &plan.tokens, 1, kMost},
                                   {"ranks", &plan.ranks, 1, RankTable::kMost},
                                   {"block-size", &plan.block_size, 1, kMost},
                                   {"runs", &plan.runs, 1, kMost}};
  if (const auto set = ReadSettings(args, settings); !set) {
    return RefuseBench(set.error().what, kRequestUsage);
  }
  RequestPath path(plan);
  path.Run();
  path.ParseDocument();
  fmt::print("{}\n", path.Report());
  return kExitFine;
}

}  // namespace fathom
