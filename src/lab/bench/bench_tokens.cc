#include "lab/bench/bench_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/exit_status.h"
#include "base/file.h"
#include "base/text.h"
#include "codec/json.h"
#include "lab/bench/bench_settings.h"
#include "router/gateway/chat_fields.h"
#include "router/gateway/request_fields.h"
#include "text/model/language_model.h"
#include "text/model/prefix_cache.h"
#include "text/tokens/key_chain.h"

namespace fathom {
namespace {

constexpr std::string_view kTokensUsage =
    "usage: fathom bench tokens MODEL_FOLDER [texts=FILE,...] [chats=FILE,...] [runs=3]\n"
    "         [block-size=16]\n"
    "Files have a JSON value per line: texts, or bodies of requests of one conversation in their\n"
    "order, for /v1/chat/completions, /v1/messages or /v1/responses.\n";

struct TokensBenchPlan {
  std::string texts;
  std::string chats;
  uint64_t runs = 3;
  uint32_t block_size = 16;
};

using Model = std::shared_ptr<const LanguageModel>;

TimePoint Now() { return std::chrono::steady_clock::now(); }
double AsMicroseconds(Duration duration) { return Seconds(duration) * 1e6; }

Result<std::vector<std::string>> LinesOf(const std::string& path) {
  auto text = ReadFile(path);
  if (!text) return std::unexpected(std::move(text).error().In(path));
  const auto lines = SplitAny(*text, "\n");
  return std::vector<std::string>(lines.begin(), lines.end());
}

// The same in every program that is measured, so that nobody is fast because he is wrong.
struct Digest {
  uint64_t tokens = 0;
  uint32_t value = 0;

  void Add(std::span<const TokenId> ids) {
    tokens += ids.size();
    for (const TokenId id : ids) value = value * 31 + id;
  }
  void Write(JsonWriter& w) const {
    w.Key("tokens").Unsigned(tokens).Key("digest").Unsigned(value);
  }
};

// --- texts, of which nothing is known

Result<void> MeasureTexts(const LanguageModel& model, const std::string& path, uint64_t runs,
                          JsonWriter& w) {
  TRY(const auto lines, LinesOf(path));
  std::vector<std::string> texts;
  for (const std::string& line : lines) {
    TRY(const Json json, Json::Parse(line));
    if (json.string() == nullptr) return Fail(Blame::kCaller, "{}: a line is not a text", path);
    texts.push_back(*json.string());
  }
  w.BeginObject().Key("seconds").BeginArray();
  Digest digest;
  for (uint64_t run = 0; run < runs; ++run) {
    Encoder encoder(model.tokenizer());  // a new one: it remembers words
    digest = {};
    Duration took{};
    for (const std::string& text : texts) {
      const TimePoint begun = Now();
      TRY(const auto tokens, encoder.Encode(text, false));
      took += Now() - begun;
      digest.Add(tokens);
    }
    w.Number(Seconds(took));
  }
  w.EndArray();
  digest.Write(w);
  w.EndObject();
  return {};
}

// --- chats, one after the other

enum TokenStage { kParse, kRender, kCut, kEncode, kJoin, kKeys, kTokenStages };
constexpr std::string_view kTokenStageNames[kTokenStages] = {"parse",  "render", "cut",
                                                             "encode", "join",   "keys"};

// What one router has in memory, and the way of a request through it.
class Turns {
 public:
  Turns(const LanguageModel& model, uint32_t block_size) : model_(model), shape_{block_size} {}

  struct Cost {
    std::array<Duration, kTokenStages> stages{};
    size_t new_bytes = 0;
    Digest digest;
    uint64_t last_key = 0;

    Duration Whole() const {
      Duration whole{};
      for (const Duration stage : stages) whole += stage;
      return whole;
    }
  };
  Result<Cost> Take(std::string_view body);

 private:
  static constexpr size_t kCacheBytes = size_t{256} << 20;
  static constexpr uint64_t kSecret = 1;

  uint64_t KeysOf(const PromptParts& parts, std::span<const TokenId> tokens);

  const LanguageModel& model_;
  const BlockShape shape_;
  Gauge bytes_;
  TokenCache cache_{kCacheBytes, bytes_};
  PrefixCache prefixes_{kCacheBytes, kSecret, bytes_};
  std::vector<uint64_t> storage_;
};

// The last of them.
uint64_t Turns::KeysOf(const PromptParts& parts, std::span<const TokenId> tokens) {
  const auto places = parts.Places();
  const KnownPrefix known = prefixes_.Find(places, kKeySeed);
  const auto keys = KeyChain(tokens, shape_, kKeySeed, storage_, known.Chain(shape_)).All();
  PrefixKeys kept;
  kept.chains.push_back({shape_, {keys.begin(), keys.end()}});
  prefixes_.Put(places, kKeySeed, known.tokens, std::move(kept));
  return keys.empty() ? 0 : keys.back();
}

Result<Turns::Cost> Turns::Take(std::string_view body) {
  Cost cost;
  TimePoint then = Now();
  const auto end = [&](TokenStage stage) {
    const TimePoint now = Now();
    cost.stages[stage] = now - then;
    then = now;
  };
  TRY(const RequestFields fields, ReadRequestFields(body));
  end(kParse);
  const auto api = LikelyApi(fields.parts);
  if (!api) return Fail(Blame::kCaller, "a body has no prompt");
  RenderedPrompt rendered = model_.RenderChat(ChatOf(PartsOf(fields.parts, *api)), {});
  if (rendered.inexact) return Fail(Blame::kCaller, "not rendered: {}", rendered.problem);
  end(kRender);
  PromptParts parts({model_.tokenizer(), cache_, model_.fingerprint(), kSecret},
                    std::move(rendered.prompt));
  end(kCut);
  cost.new_bytes = parts.missing_bytes();
  const LanguageModel::Lease encoder = model_.Borrow();
  TRY_VOID(parts.Complete(*encoder));
  end(kEncode);
  std::vector<TokenId> tokens;
  parts.AppendTo(tokens);
  end(kJoin);
  cost.last_key = KeysOf(parts, tokens);
  end(kKeys);
  cost.digest.Add(tokens);
  return cost;
}

// By its whole, so that the stages are those of one turn and add up.
Turns::Cost MedianCost(std::vector<Turns::Cost> costs) {
  const auto middle = costs.begin() + static_cast<std::ptrdiff_t>(costs.size() / 2);
  std::ranges::nth_element(costs, middle, {}, &Turns::Cost::Whole);
  return *middle;
}

void WriteTurn(JsonWriter& w, const Turns::Cost& cost, size_t bytes) {
  w.BeginObject().Key("bytes").Unsigned(bytes).Key("new_bytes").Unsigned(cost.new_bytes);
  cost.digest.Write(w);
  w.Key("last_key").Unsigned(cost.last_key);
  w.Key("microseconds").Number(AsMicroseconds(cost.Whole())).Key("stages").BeginObject();
  for (size_t i = 0; i < kTokenStages; ++i) {
    w.Key(kTokenStageNames[i]).Number(AsMicroseconds(cost.stages[i]));
  }
  w.EndObject().EndObject();
}

Result<void> MeasureChats(const LanguageModel& model, const std::string& path,
                          const TokensBenchPlan& plan, JsonWriter& w) {
  TRY(const auto bodies, LinesOf(path));
  std::vector<std::vector<Turns::Cost>> costs(bodies.size());
  for (uint64_t run = 0; run < plan.runs; ++run) {
    Turns turns(model, plan.block_size);
    for (size_t i = 0; i < bodies.size(); ++i) {
      TRY(auto cost, turns.Take(bodies[i]));
      costs[i].push_back(cost);
    }
  }
  w.BeginArray();
  for (size_t i = 0; i < bodies.size(); ++i) WriteTurn(w, MedianCost(costs[i]), bodies[i].size());
  w.EndArray();
  return {};
}

Result<std::string> MeasureTokens(std::string_view folder, const TokensBenchPlan& plan) {
  const TimePoint begun = Now();
  TRY(const Model model, LanguageModel::Load({.model = std::string(folder)}));
  JsonWriter w;
  w.BeginObject().Key("load_seconds").Number(Seconds(Now() - begun));
  w.Key("files").BeginArray();
  for (const std::string_view path : SplitAny(plan.texts, ",")) {
    TRY_VOID(MeasureTexts(*model, std::string(path), plan.runs, w));
  }
  w.EndArray().Key("chats").BeginArray();
  for (const std::string_view path : SplitAny(plan.chats, ",")) {
    TRY_VOID(MeasureChats(*model, std::string(path), plan, w));
  }
  w.EndArray().EndObject();
  return w.Take();
}

}  // namespace

int RunBenchTokens(std::span<const std::string_view> args) {
  TokensBenchPlan plan;
  const BenchSetting settings[] = {{"texts", &plan.texts},
                                   {"chats", &plan.chats},
                                   {"runs", &plan.runs, 1, 1e6},
                                   {"block-size", &plan.block_size, 1, 1 << 20}};
  if (args.empty()) {
    fmt::print(stderr, "{}", kTokensUsage);
    return kExitUsage;
  }
  if (const auto set = ReadSettings(args.subspan(1), settings); !set) {
    return RefuseBench(set.error().what, kTokensUsage);
  }
  const auto report = MeasureTokens(args[0], plan);
  if (!report) {
    fmt::print(stderr, "fathom bench: {}\n", report.error().what);
    return kExitFailed;
  }
  fmt::print("{}\n", *report);
  return kExitFine;
}

}  // namespace fathom
