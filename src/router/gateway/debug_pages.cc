#include "router/gateway/debug_pages.h"
#include "router/gateway/prompt_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "codec/json.h"
#include "codec/json_scan.h"
#include "codec/request_target.h"
#include "metrics/catalogue.h"
#include "router/gateway/decision_text.h"
#include "router/gateway/openai_error.h"
#include "router/gateway/selection.h"
#include "text/tokens/block_hash.h"
#include "text/tokens/token_ids.h"

namespace fathom {
namespace {

struct LookupQuestion {
  std::string model;
  std::vector<TokenId> tokens;
  std::string lora;
  std::string salt;
};

Result<void> ReadText(const JsonScanner::Member& member, std::string& into) {
  into.clear();
  if (member.value == "null") return {};
  auto text = JsonText(member.value);
  if (!text) return Fail(Blame::kCaller, "'{}' must be a string", member.key);
  into = *std::move(text);
  return {};
}

// The ids are read where they stand: a list of millions has no other copy.
Result<LookupQuestion> ReadQuestion(std::string_view body) {
  LookupQuestion question;
  std::string_view tokens;
  JsonScanner members(body);
  for (;;) {
    TRY(const auto member, members.Next());
    if (!member) break;
    if (JsonKeyIs(member->key, "model")) TRY_VOID(ReadText(*member, question.model));
    if (JsonKeyIs(member->key, "lora")) TRY_VOID(ReadText(*member, question.lora));
    if (JsonKeyIs(member->key, "salt")) TRY_VOID(ReadText(*member, question.salt));
    if (JsonKeyIs(member->key, "tokens")) tokens = member->value;
  }
  if (!tokens.starts_with('[')) {
    return Fail(Blame::kCaller, R"('tokens' must be an array of token ids)");
  }
  auto read = AppendTokenIds(tokens, question.tokens);
  if (!read) return std::unexpected(std::move(read).error().In("'tokens'"));
  return question;
}

double AgeSeconds(const FeedStatus& feed) {
  const int64_t at = feed.last_event.load(std::memory_order_relaxed);
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return Seconds(now - Duration(at));
}

void WriteDepth(JsonWriter& w, const CacheReader::Found* found) {
  static const CacheReader::Found kNothing;
  const CacheReader::Found& depth = found != nullptr ? *found : kNothing;
  w.Key("cached_tokens").Unsigned(depth.tokens[0]);
  w.Key("tiers");
  WriteTiers(w, depth.tokens);
}

void WriteFeed(JsonWriter& w, const FeedStatus& feed, const FleetSnapshot& fleet) {
  const Member* const member = fleet.Find(feed.worker);
  w.BeginObject().Key("worker").Unsigned(feed.worker.value());
  w.Key("url");
  member != nullptr ? w.String(member->worker->spec().url) : w.Null();
  w.Key("rank").Unsigned(feed.dp_rank.load(std::memory_order_relaxed));
  w.Key("source").String(feed.source);
  w.Key("connected").Bool(feed.connected.load(std::memory_order_relaxed));
  w.Key("reach").String(Name(feed.reach.load(std::memory_order_relaxed)));
  const int64_t sequence = feed.last_sequence.load(std::memory_order_relaxed);
  w.Key("last_sequence");
  sequence < 0 ? w.Null() : w.Int(sequence);
  w.Key("last_event_age_seconds");
  feed.last_event.load(std::memory_order_relaxed) == 0 ? w.Null() : w.Number(AgeSeconds(feed));
  // Share of the cache groups whose reuse rule is known.
  const double known = static_cast<double>(feed.cache_parts.Get());
  const double unknown = static_cast<double>(feed.unsupported_groups.Get());
  w.Key("credit").Number(known + unknown == 0 ? 1 : known / (known + unknown));
#define FATHOM_WRITE_NUMBER(name, suffix) w.Key(#name).Unsigned(feed.name.Get());
  FATHOM_FEED_NUMBERS(FATHOM_WRITE_NUMBER)
#undef FATHOM_WRITE_NUMBER
  w.EndObject();
}

Answer NotFollowed() {
  return OpenAiError(404, "no_index",
                     "KV events are not followed (--kv-events off, or --no-router-kv-events)");
}

Route RouteOf(const RequestFields& fields) {
  const auto likely = LikelyApi(fields.parts);
  if (!likely && !fields.token_ids.empty()) return Route::kInferenceGenerate;
  if (!likely && !TextOrIds(fields, Route::kGenerate).empty()) return Route::kGenerate;
  const PromptApis api = likely.value_or(kInCompletions);
  if (api == kInMessages) return Route::kMessages;
  if (api == kInResponses) return Route::kResponses;
  return api == kInChats ? Route::kChat : Route::kCompletions;
}

Answer Refused(const Selection::Refusal& refusal) {
  return OpenAiError(refusal.status, refusal.code, refusal.what);
}

}  // namespace

Answer DebugPages::Lookup(std::string_view body) {
  if (context_.cache_index == nullptr) return NotFollowed();
  RequestMemory::Share memory;
  if (!memory.TryTake(context_.prompt_memory, 4 * body.size())) {
    return OpenAiError(503, "overloaded", "too many long prompts are being read; ask again later");
  }
  const auto question = ReadQuestion(body);
  if (!question) return OpenAiError(400, "bad_lookup", question.error().what);
  const auto fleet = context_.fleet.Current();
  if (question->model.size() > kLongestModel) {
    return OpenAiError(400, "invalid_model",
                       fmt::format("'model' must have at most {} bytes", kLongestModel), "model");
  }
  if (!question->model.empty() && !fleet->KnowsModel(question->model)) {
    return OpenAiError(404, "model_not_found",
                       fmt::format("no worker serves the model '{}'", question->model), "model");
  }
  if (!reader_) reader_ = std::make_unique<CacheReader>(*context_.cache_index);
  const auto found =
      reader_->Match(question->tokens, NamespaceSeed(question->lora, question->salt));
  JsonWriter w;
  w.BeginObject().Key("ranks").BeginArray();
  for (const auto& feed : context_.feeds->All()) {
    const Member* const member = fleet->Find(feed->worker);
    if (member == nullptr || !member->Serves(question->model)) continue;
    const RankLabel label{feed->worker.value(), feed->dp_rank.load(std::memory_order_relaxed)};
    const auto depth = std::ranges::find(found, label, &CacheReader::Found::rank);
    w.BeginObject().Key("worker").Unsigned(label.worker).Key("rank").Unsigned(label.dp_rank);
    w.Key("block_size").Unsigned(feed->block_size.Get());
    WriteDepth(w, depth == found.end() ? nullptr : &*depth);
    w.EndObject();
  }
  w.EndArray().EndObject();
  return {.body = w.Take()};
}

// The number of distinct blocks is not kept: writers would have to agree on it. All tables are
// scanned instead, for a millisecond at a time.
Task<size_t> DebugPages::CountBlocks(const PrefixIndex& index) const {
  constexpr Duration kSlice = std::chrono::milliseconds(1);
  size_t blocks = 0;
  TimePoint until = std::chrono::steady_clock::now() + kSlice;
  for (size_t part = 0; part < index.parts(); ++part) {
    blocks += index.CountBlocks(part);
    if (std::chrono::steady_clock::now() < until) continue;
    co_await loop_.Sleep(Duration::zero());
    until = std::chrono::steady_clock::now() + kSlice;
  }
  co_return blocks;
}

Task<Answer> DebugPages::Index() const {
  if (context_.cache_index == nullptr) co_return NotFollowed();
  const CacheIndex& index = *context_.cache_index;
  const auto feeds = context_.feeds->All();
  uint64_t held = 0;
  uint64_t orphans = 0;
  for (const auto& feed : feeds) {
    held += feed->blocks.Get();
    orphans += feed->orphans.Get();
  }
  size_t blocks = 0;
  JsonWriter shapes;
  shapes.BeginArray();
  for (size_t i = 0; i < index.shapes(); ++i) {
    auto counting = CountBlocks(index.at(i));
    const size_t here = co_await counting;
    blocks += here;
    shapes.BeginObject().Key("block_size").Unsigned(index.at(i).shape().size);
    shapes.Key("pairs").Bool(index.at(i).shape().pairs);
    shapes.Key("blocks").Unsigned(here).Key("ranks").Unsigned(index.at(i).ranks()).EndObject();
  }
  shapes.EndArray();
  JsonWriter w;
  w.BeginObject().Key("blocks").Unsigned(blocks).Key("held").Unsigned(held);
  w.Key("orphans").Unsigned(orphans).Key("bytes").Unsigned(index.memory().bytes());
  w.Key("max_bytes").Unsigned(index.memory().limit());
  w.Key("shapes").Raw(shapes.Take());
  w.Key("ranks").BeginArray();
  const auto fleet = context_.fleet.Current();
  for (const auto& feed : feeds) WriteFeed(w, *feed, *fleet);
  w.EndArray().EndObject();
  co_return Answer{.body = w.Take()};
}

Answer DebugPages::Decisions(const RequestHead& head) const {
  constexpr uint64_t kUsual = 20;
  constexpr std::string_view kLimit = "limit=";
  uint64_t limit = kUsual;
  for (const std::string_view part : SplitAny(RequestTarget::Of(head.target).query, "?&")) {
    if (!part.starts_with(kLimit)) continue;
    const auto number = ParseDecimal(part.substr(kLimit.size()));
    if (!number) return OpenAiError(400, "bad_limit", "limit must be a number", "limit");
    limit = *number;
  }
  const auto fleet = context_.fleet.Current();
  JsonWriter w;
  w.BeginObject().Key("count").Unsigned(context_.steering.ring.count());
  w.Key("decisions").BeginArray();
  for (const Decision& decision : context_.steering.ring.Latest(limit)) {
    WriteDecision(w, decision, *fleet, loop_.now());
  }
  w.EndArray().EndObject();
  return {.body = w.Take()};
}

Answer DebugPages::NobodyFor(const FleetSnapshot& fleet, const std::string& model) const {
  if (!fleet.KnowsModel(model)) {
    return OpenAiError(404, "model_not_found",
                       fmt::format("no worker serves the model '{}'", model), "model");
  }
  return OpenAiError(503, "no_workers", "no worker is ready for this request");
}

Task<Answer> DebugPages::Explain(const RequestHead& head, std::string_view body) {
  if (!WantsTokens(context_.options.steering.mode)) {
    co_return OpenAiError(404, "not_by_prompt",
                          "--router-mode " + std::string(Name(context_.options.steering.mode)) +
                              " does not use prompts; there is no decision to explain");
  }
  const auto fields = ReadRequestFields(body);
  if (!fields) co_return OpenAiError(400, "invalid_json", fields.error().what);
  if (!fields->model_problem.empty()) {
    co_return OpenAiError(400, "invalid_model", fields->model_problem, "model");
  }
  if (!router_) router_ = std::make_unique<LoopRouter>(context_, loop_, 1);
  const Route route = RouteOf(*fields);
  Selection selection(*router_, head, route, *fields, "");
  if (selection.names_response()) {
    auto finding = selection.FindHolder();
    const bool found = co_await finding;
    if (!found) co_return Refused(*selection.refusal());
  }
  if (selection.HasNoWorker()) {
    if (selection.refusal()) co_return Refused(*selection.refusal());
    co_return NobodyFor(*context_.fleet.Current(), fields->model);
  }
  auto preparing = selection.Prepare();
  const auto prepared = co_await preparing;
  if (!prepared) co_return OpenAiError(400, "bad_routing_override", prepared.error().what);
  bool would_wait = false;
  const Steering::Choice choice = selection.Preview(would_wait);
  const auto fleet = context_.fleet.Current();
  if (choice.decision == nullptr) co_return NobodyFor(*fleet, fields->model);
  choice.decision->model = fields->model;
  choice.decision->request_id.clear();
  choice.decision->number = 0;
  choice.decision->waited = 0;
  JsonWriter w;
  w.BeginObject().Key("would_wait").Bool(would_wait);
  WriteDecisionMembers(w, *choice.decision, *fleet, loop_.now());
  w.EndObject();
  co_return Answer{.body = w.Take()};
}

namespace {

// Events that do not change the index, by reason.
void CollectDropped(const FeedStatus& feed, const Labels& labels, Exposition& out) {
  const auto add = [&](const char* reason, const FeedNumber& number) {
    Labels with = labels;
    with.emplace_back("reason", reason);
    out.Add(Metric("kv_router_dropped_events_total"), with, static_cast<double>(number.Get()));
  };
  add("block_size_mismatch", feed.mismatched_events);  // not the size in use
  add("other_block_size", feed.other_block_size);      // not the size of the rank's other events
  add("malformed", feed.malformed_events);
  add("ignored", feed.ignored_events);
}

}  // namespace

void CollectCacheMetrics(const FleetSnapshot& fleet, const FeedBoard& feeds,
                         const CacheIndex& index, Exposition& out) {
  out.Add(Metric("kv_router_index_bytes"), {}, static_cast<double>(index.memory().bytes()));
  out.Add(Metric("kv_router_index_max_bytes"), {}, static_cast<double>(index.memory().limit()));
  constexpr const MetricFamily& kLag = Metric("kv_router_event_lag_seconds");
  out.Add(kLag, {{"from", "timestamp"}}, feeds.lag_by_timestamp.Snapshot());
  out.Add(kLag, {{"from", "first_byte"}}, feeds.lag_after_first_byte.Snapshot());
  for (size_t i = 0; i < FeedBoard::kRefusals.size(); ++i) {
    out.Add(Metric("kv_router_publishers_refused_total"),
            {{"reason", std::string(FeedBoard::kRefusals[i])}},
            static_cast<double>(feeds.refused_publishers[i].Get()));
  }
  for (const auto& feed : feeds.All()) {
    if (fleet.Find(feed->worker) == nullptr) continue;  // has left; its stream ends soon
    const Labels labels = {
        {"worker", std::to_string(feed->worker.value())},
        {"dp_rank", std::to_string(feed->dp_rank.load(std::memory_order_relaxed))}};
    out.Add(Metric("kv_router_feed_connected"), labels,
            feed->connected.load(std::memory_order_relaxed) ? 1 : 0);
    if (feed->last_event.load(std::memory_order_relaxed) != 0) {
      out.Add(Metric("kv_router_feed_last_event_age_seconds"), labels, AgeSeconds(*feed));
    }
#define FATHOM_EXPOSE(name, suffix) \
  out.Add(Metric("kv_router_feed_" #name suffix), labels, static_cast<double>(feed->name.Get()));
    FATHOM_FEED_NUMBERS(FATHOM_EXPOSE)
    CollectDropped(*feed, labels, out);
#undef FATHOM_EXPOSE
  }
}

}  // namespace fathom
