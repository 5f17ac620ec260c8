#include "gateway/selection.h"

#include <algorithm>

#include "base/text.h"
#include "gateway/decision_text.h"
#include "gateway/token_body.h"

namespace fathom {
namespace {

// How many pieces of an answer pass before the rank's load hears of them.
constexpr uint32_t kPiecesAtOnce = 16;

bool HasPrompt(Route route) { return route == Route::kChat || route == Route::kCompletions; }

// TensorRT-LLM chooses among its ranks by itself, so its worker is one place.
bool CanBeTold(const Worker& worker) {
  return worker.ranks.several() && worker.report.engine() != EngineKind::kTrtllm;
}

bool IsExact(const PromptTokens& prompt) {
  return prompt.from != TokensFrom::kPartial && prompt.from != TokensFrom::kNone && !prompt.inexact;
}

// Several prompts in one request: their cached tokens are counted together.
bool HasSeveralPrompts(std::string_view prompt) {
  if (!prompt.starts_with('[')) return false;
  const size_t first = prompt.find_first_not_of(" \t\r\n", 1);
  return first != std::string_view::npos && (prompt[first] == '"' || prompt[first] == '[');
}

// Whether what the engine says of cached tokens is about the rank that was chosen, and this prompt.
bool IsComparable(const Worker& worker, const RequestFields& fields) {
  const bool certain = CanBeTold(worker) || !worker.ranks.several();
  return certain && !fields.counts_otherwise && !fields.echo &&
         !HasSeveralPrompts(fields.parts.prompt);
}

// An engine that found more than there was is not believed.
std::optional<uint32_t> FoundBy(const EngineUsage& usage) {
  constexpr uint64_t kMost = 1u << 30;
  if (!usage.cached_tokens || *usage.cached_tokens > std::min(usage.prompt_tokens, kMost)) {
    return std::nullopt;
  }
  return static_cast<uint32_t>(*usage.cached_tokens);
}

}  // namespace

void ListPlaces(std::span<const Member* const> eligible, std::optional<uint32_t> wanted,
                std::vector<Place>& places) {
  places.clear();
  for (const Member* member : eligible) {
    Worker* const worker = member->worker.get();
    Rank* const named = wanted ? worker->ranks.Find(*wanted) : nullptr;
    if (named != nullptr) {
      places.push_back({worker, named});
    } else if (!CanBeTold(*worker)) {
      places.push_back({worker, &worker->ranks.only()});
    } else {
      worker->ranks.ForEach([&](Rank& rank) { places.push_back({worker, &rank}); });
    }
  }
}

Selection::Selection(LoopRouter& router, const RequestHead& head, Route route,
                     const RequestFields& fields, std::string_view request_id)
    : router_(router),
      context_(router.context),
      loop_(router.loop),
      head_(head),
      route_(route),
      fields_(fields),
      request_id_(request_id),
      fleet_(router.fleet.Get()),
      by_prompt_(WantsTokens(router.chooser.mode()) && HasPrompt(route)),
      weights_(router.context.steering.options.weights) {
  if (const Header* session = head.headers.Find(HeaderName::kSessionId);
      session != nullptr && context_.affinity.enabled()) {
    session_ = session->value;
  }
}

bool Selection::AwaitsWorkers() {
  fleet_ = router_.fleet.Get();
  return fleet_->Serving(fields_.model).empty() && fleet_->MaySoonServe(fields_.model);
}

Task<Result<void>> Selection::Prepare() {
  if (const Header* wish = head_.headers.Find(HeaderName::kFathomRouting)) {
    auto weights = Override(weights_, wish->value);
    if (!weights) co_return std::unexpected(std::move(weights).error().In("x-fathom-routing"));
    weights_ = *weights;
  }
  if (const Header* rank = head_.headers.Find(HeaderName::kDataParallelRank)) {
    const auto number = ParseDecimal(rank->value);
    if (number && *number < RankTable::kMost) wanted_rank_ = static_cast<uint32_t>(*number);
  }
  auto reading = router_.prompts.Read(fields_, route_, fleet_);
  prompt_ = co_await reading;
  co_return Result<void>();
}

// Fills the router's lists with the workers that could serve the request now.
bool Selection::FindEligible() {
  router_.eligible.clear();
  router_.candidates.clear();
  for (const Member* member : fleet_->Serving(fields_.model)) {
    const Worker& worker = *member->worker;
    if (!worker.breaker.Allows(loop_.now())) continue;
    if (std::find(tried_.begin(), tried_.end(), worker.id()) != tried_.end()) continue;
    router_.eligible.push_back(member);
    router_.candidates.push_back({worker.id(), worker.in_flight.load(std::memory_order_relaxed)});
  }
  return !router_.eligible.empty();
}

// A session's last worker comes first, if it can be had.
bool Selection::NarrowToSession() {
  if (session_.empty() || !tried_.empty()) return false;
  const auto last = context_.affinity.Find(session_, loop_.now());
  for (size_t i = 0; last && i < router_.candidates.size(); ++i) {
    if (router_.candidates[i].id != *last) continue;
    router_.eligible = {router_.eligible[i]};
    router_.candidates = {router_.candidates[i]};
    return true;
  }
  return false;
}

Worker* Selection::Pick() {
  if (WantsTokens(router_.chooser.mode()) && tried_.empty()) context_.metrics.without_prompt.Add();
  if (router_.chooser.mode() == RouterMode::kDirect) return PickDirect();
  if (!FindEligible()) return nullptr;
  NarrowToSession();
  return router_.eligible[router_.chooser.Choose(router_.candidates)]->worker.get();
}

// The client named its worker; nobody else will do.
Worker* Selection::PickDirect() {
  if (!tried_.empty()) return nullptr;
  const Header* const named = head_.headers.Find(HeaderName::kFathomWorker);
  const auto id = named != nullptr ? ParseDecimal(named->value) : std::nullopt;
  const Member* const member = id ? fleet_->Find(WorkerId(*id)) : nullptr;
  if (member == nullptr) {
    refusal_ = {400, "no_such_worker",
                "the router is in direct mode: name a worker of the fleet in x-fathom-worker"};
    return nullptr;
  }
  const auto& serving = fleet_->Serving(fields_.model);
  if (std::find(serving.begin(), serving.end(), member) == serving.end()) {
    if (!fleet_->KnowsModel(fields_.model)) return nullptr;
    refusal_ = {503, "worker_not_ready",
                "the worker named in x-fathom-worker is not ready for this model"};
    return nullptr;
  }
  return member->worker.get();
}

RouteQuestion Selection::Question() const {
  return {.tokens = prompt_.tokens,
          .seed = prompt_.seed,
          .known = prompt_.known,
          .prompt_tokens = static_cast<uint32_t>(prompt_.prompt_tokens),
          .space = Space(),
          .queued = context_.dispatch.Waiting(fields_.model),
          .weights = weights_};
}

PromptSpace Selection::Space() const {
  if (!fields_.cache_salt.empty()) return PromptSpace::kSalted;
  return fleet_->IsAdapter(fields_.model) ? PromptSpace::kAdapter : PromptSpace::kPlain;
}

// The decision is null if no rank has room, or nobody can serve the request at all.
Steering::Choice Selection::Decide(Steering::Patience patience) {
  fleet_ = router_.fleet.Get();
  if (!FindEligible()) return {};
  if (NarrowToSession()) {
    const Steering::Choice choice = DecideAmong(patience, "session");
    // Its own worker comes first if it can be had now: nobody is held up for it.
    if (choice.decision != nullptr || !FindEligible()) return choice;
  }
  // A rank that the client names is not waited for either.
  if (wanted_rank_) return DecideAmong(Steering::Patience::kMustChoose, "rank");
  return DecideAmong(patience, "");
}

Steering::Choice Selection::DecideAmong(Steering::Patience patience, std::string_view narrowed_by) {
  ListPlaces(router_.eligible, wanted_rank_, router_.places);
  const Steering::Choice choice =
      router_.steering.Decide(Question(), router_.places, loop_.now(), patience);
  if (choice.decision == nullptr) return choice;
  choice.decision->narrowed_by = narrowed_by;
  Explain(*choice.decision);
  return choice;
}

Steering::Choice Selection::Try(bool& would_wait) {
  const bool queues = context_.steering.options.queue_threshold > 0;
  const Steering::Choice choice =
      Decide(queues ? Steering::Patience::kMayWait : Steering::Patience::kMustChoose);
  would_wait = choice.decision == nullptr && !router_.eligible.empty();
  return would_wait ? Decide(Steering::Patience::kMustChoose) : choice;
}

Task<Worker*> Selection::ChooseByPrompt(TimePoint give_up_at) {
  cached_tokens_.reset();
  names_rank_ = false;
  // A retry has waited enough, and its place is with those who were before it.
  const bool may_wait = context_.steering.options.queue_threshold > 0 && tried_.empty();
  if (!may_wait || !context_.dispatch.Waiting(fields_.model)) {
    const auto patience = may_wait ? Steering::Patience::kMayWait : Steering::Patience::kMustChoose;
    const Steering::Choice choice = Decide(patience);
    if (choice.decision != nullptr) co_return Book(choice, Duration::zero());
    if (router_.eligible.empty()) co_return nullptr;
  }
  auto awaiting = AwaitTurn(give_up_at);
  co_return co_await awaiting;
}

// In the line until a rank has room, or it has taken too long. Booked before the next one is told.
Task<Worker*> Selection::AwaitTurn(TimePoint give_up_at) {
  using Signal = DispatchQueue::Signal;
  context_.metrics.queued.Add();
  const TimePoint begun = loop_.now();
  const TimePoint deadline = std::min(give_up_at, begun + context_.options.dispatch_timeout);
  DispatchQueue::Waiter waiter(context_.dispatch, loop_, fields_.model, deadline);
  waiting_ = &waiter;
  Worker* chosen = nullptr;
  for (bool done = cancelled_; !done;) {
    const Signal signal = co_await waiter;
    // A turn that was under way when the request was cancelled comes all the same.
    if (cancelled_) break;
    const bool late = signal == Signal::kTimedOut;
    if (late) context_.metrics.queue_timeouts.Add();
    if (loop_.now() >= give_up_at) {
      refusal_ = {504, "queue_timeout", "no worker had room for this request in time"};
      break;
    }
    const Steering::Choice choice =
        Decide(late ? Steering::Patience::kMustChoose : Steering::Patience::kMayWait);
    if (choice.decision != nullptr) chosen = Book(choice, loop_.now() - begun);
    done = chosen != nullptr || router_.eligible.empty();
  }
  waiting_ = nullptr;
  co_return chosen;
}

// Where the tokens came from, and why they are not all of them.
void Selection::Explain(Decision& decision) const {
  decision.tokens_from = Name(prompt_.from);
  decision.known_tokens = static_cast<uint32_t>(prompt_.tokens.size());
  decision.inexact = prompt_.inexact ? Name(*prompt_.inexact) : std::string_view();
}

Worker* Selection::Book(const Steering::Choice& choice, Duration waited) {
  Decision& decision = *choice.decision;
  decision.request_id = request_id_;
  decision.model = fields_.model;
  decision.waited = Seconds(waited);
  const auto answer = fields_.stream ? Reservation::Answer::kStreamed : Reservation::Answer::kWhole;
  if (tried_.empty() && PromptReader::HasMoreToKeep(prompt_)) {
    router_.prompts.Keep(prompt_, router_.steering.Keys(Question()));
  }
  usage_.reset();
  booked_.emplace(router_.steering, choice, Question(), answer, loop_.now());
  pieces_ = 0;
  dp_rank_ = choice.place.rank->number;
  // What the client itself says goes to the worker as it is.
  names_rank_ = !wanted_rank_ && CanBeTold(*choice.place.worker);
  if (decision.tokens_known) cached_tokens_ = decision.cached_tokens();
  context_.metrics.Count(decision, router_.steering.stages(), tried_.empty());
  if (waited > Duration::zero()) context_.metrics.queue_wait.Observe(waited);
  context_.steering.ring.Keep(decision);
  Testify(choice);
  if (context_.options.log_selections && context_.log.Enabled(LogLevel::kInfo)) {
    context_.log.Info(SelectionLine(decision), {{"request_id", request_id_}});
  }
  return choice.place.worker;
}

// Where caches are followed and the prompt is known, the request can bear witness.
void Selection::Testify(const Steering::Choice& choice) {
  if (context_.cache_index == nullptr || prompt_.tokens.empty()) return;
  const RequestWitness::About about{.fleet = *fleet_,
                                    .model = fields_.model,
                                    .exact = IsExact(prompt_),
                                    .comparable = IsComparable(*choice.place.worker, fields_),
                                    .narrowed = !choice.decision->narrowed_by.empty()};
  witness_.emplace(context_, router_.steering, choice, Question(), about, loop_.now());
}

std::span<const TokenId> Selection::TokensFor(const Worker& worker) const {
  if (!context_.options.forward_tokens || prompt_.from != TokensFrom::kTokenizer) return {};
  const EngineKind engine = worker.report.engine();
  // Another engine would have prepared the chat in another way.
  if (engine != prompt_.engine || !TakesTokenIds(engine, route_, fields_)) return {};
  return prompt_.tokens;
}

bool Selection::AnotherBeside(const Worker& failed) {
  if (router_.chooser.mode() == RouterMode::kDirect) return false;
  tried_.push_back(failed.id());
  const bool another = FindEligible();
  tried_.pop_back();
  return another;
}

void Selection::Exclude(const Worker& worker) {
  tried_.push_back(worker.id());
  fleet_ = router_.fleet.Get();
}

void Selection::Release() {
  if (!booked_) return;
  if (pieces_ > 0) booked_->Grow(pieces_);
  booked_->Release(loop_.now());
  booked_.reset();
  if (witness_) {
    witness_->End(usage_ ? FoundBy(*usage_) : std::nullopt, loop_.now());
    witness_.reset();
  }
  context_.dispatch.Wake();
}

void Selection::Cancel() {
  cancelled_ = true;
  if (waiting_ != nullptr) waiting_->Cancel();
}

// An error teaches nothing about the rank's speed, and leaves nothing in its cache.
void Selection::OnFirstByte(int status) {
  if (!booked_ || status >= 300) return;
  booked_->FirstByte(loop_.now());
  if (witness_) witness_->FirstByte(loop_.now());
  prompt_ = {};  // nobody else will be asked any more
  context_.dispatch.Wake();
}

void Selection::OnPiece() {
  if (!booked_ || ++pieces_ < kPiecesAtOnce) return;
  booked_->Grow(pieces_);
  pieces_ = 0;
}

}  // namespace fathom
