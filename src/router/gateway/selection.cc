#include "router/gateway/selection.h"

#include <algorithm>

#include "base/text.h"
#include "router/gateway/decision_text.h"
#include "router/gateway/token_body.h"

namespace fathom {
namespace {

// Pieces of an answer that are collected before the rank's load is updated.
constexpr uint32_t kPiecesAtOnce = 16;

bool IsExact(const PromptTokens& prompt) {
  return prompt.from != TokensFrom::kPartial && prompt.from != TokensFrom::kNone && !prompt.inexact;
}

// The engine counts the cached tokens of several prompts in one request together.
bool HasSeveralPrompts(std::string_view prompt) {
  if (!prompt.starts_with('[')) return false;
  const size_t first = prompt.find_first_not_of(" \t\r\n", 1);
  return first != std::string_view::npos && (prompt[first] == '"' || prompt[first] == '[');
}

// Whether the engine's count of cached tokens is for the chosen rank and for this prompt alone.
bool IsComparable(const Worker& worker, const RequestFields& fields) {
  const bool certain = CanBeTold(worker) || !worker.ranks.several();
  return certain && !fields.counts_otherwise && !fields.echo &&
         !HasSeveralPrompts(fields.parts.prompt);
}

// A count above the prompt's length is invalid.
std::optional<uint32_t> FoundBy(const EngineUsage& usage) {
  constexpr uint64_t kMost = 1u << 30;
  if (!usage.cached_tokens || *usage.cached_tokens > std::min(usage.prompt_tokens, kMost)) {
    return std::nullopt;
  }
  return static_cast<uint32_t>(*usage.cached_tokens);
}

}  // namespace

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
      by_prompt_(WantsTokens(router.policy.mode()) && HasPrompt(route)),
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
  if (const Header* routing = head_.headers.Find(HeaderName::kFathomRouting)) {
    auto weights = Override(weights_, routing->value);
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

// Fills the router's lists with the workers that can serve the request now.
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

// The ranks that can serve the request now.
Roster& Selection::FindRoster() {
  Roster& roster = router_.rosters.Of(*fleet_, fields_.model, loop_.now());
  for (uint32_t i = 0; i < roster.size() && !tried_.empty(); ++i) {
    const WorkerId id = roster.at(i).worker->id();
    if (std::ranges::find(tried_, id) != tried_.end()) roster.Exclude(i);
  }
  return roster;
}

// A session's last worker is preferred, if it is available.
const Member* Selection::MemberOfSession() const {
  if (session_.empty() || !tried_.empty()) return nullptr;
  const auto last = context_.affinity.Find(session_, loop_.now());
  const Member* const member = last ? fleet_->Find(*last) : nullptr;
  const bool available = member != nullptr && member->state == WorkerState::kReady &&
                         member->Serves(fields_.model) &&
                         member->worker->breaker.Allows(loop_.now());
  return available ? member : nullptr;
}

// The same for requests without a prompt.
bool Selection::NarrowToSession() {
  const Member* const member = MemberOfSession();
  if (member == nullptr) return false;
  const uint32_t in_flight = member->worker->in_flight.load(std::memory_order_relaxed);
  router_.eligible = {member};
  router_.candidates = {{member->worker->id(), in_flight}};
  return true;
}

Worker* Selection::SelectWithoutPrompt() {
  if (WantsTokens(router_.policy.mode()) && tried_.empty()) context_.metrics.without_prompt.Add();
  if (router_.policy.mode() == RouterMode::kDirect) return SelectNamed();
  if (!FindEligible()) return nullptr;
  NarrowToSession();
  return router_.eligible[router_.policy.Decide(router_.candidates)]->worker.get();
}

// The client named its worker; no other is used.
Worker* Selection::SelectNamed() {
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
          .kind = prompt_.kind,
          .queued = context_.dispatch.Waiting(fields_.model),
          .weights = weights_};
}

PromptSpace Selection::Space() const {
  if (!fields_.cache_salt.empty()) return PromptSpace::kSalted;
  return fleet_->IsAdapter(fields_.model) ? PromptSpace::kAdapter : PromptSpace::kPlain;
}

// The decision is null if no rank has room, or if no worker can serve the request.
Steering::Choice Selection::Decide(Steering::Patience patience) {
  fleet_ = router_.fleet.Get();
  Roster& roster = FindRoster();
  any_worker_ = roster.present() > 0;
  if (!any_worker_) return {};
  if (const Member* const member = MemberOfSession()) {
    router_.eligible = {member};
    const Steering::Choice choice = DecideAmong(patience, "session");
    // The session's worker is used only if it has room now: the request does not wait for it.
    if (choice.decision != nullptr) return choice;
  }
  if (wanted_rank_) {
    // The request does not wait for a rank that the client names, either.
    FindEligible();
    return DecideAmong(Steering::Patience::kMustDecide, "rank");
  }
  return Explained(router_.steering.Decide(Question(), roster, loop_.now(), patience), "");
}

Steering::Choice Selection::DecideAmong(Steering::Patience patience, std::string_view narrowed_by) {
  ListPlaces(router_.eligible, wanted_rank_, router_.places);
  return Explained(router_.steering.Decide(Question(), router_.places, loop_.now(), patience),
                   narrowed_by);
}

Steering::Choice Selection::Preview(bool& would_wait) {
  const bool queues = context_.steering.options.queue_threshold > 0;
  const Steering::Choice choice =
      Decide(queues ? Steering::Patience::kMayWait : Steering::Patience::kMustDecide);
  would_wait = choice.decision == nullptr && any_worker_;
  return would_wait ? Decide(Steering::Patience::kMustDecide) : choice;
}

size_t Selection::FindReplay(size_t from) const {
  const auto& serving = fleet_->Serving(fields_.model);
  const Duration patience = context_.options.replay_wait;
  const TimePoint now = loop_.now();
  if (!CatchUp::AwaitedInFleet(fleet_->pulse(), now, patience)) return serving.size();
  while (from < serving.size() && !serving[from]->worker->catch_up.Awaited(now, patience)) ++from;
  return from;
}

// A prefix that is prefilled again costs more than this wait (docs/tuning.md has the numbers).
// While a worker replays, only that one is looked at: many requests may wait in a large fleet.
Task<void> Selection::AwaitReplays(TimePoint give_up_at) {
  constexpr Duration kLook = std::chrono::milliseconds(5);
  const TimePoint deadline = std::min(give_up_at, loop_.now() + context_.options.replay_wait);
  const size_t all = fleet_->Serving(fields_.model).size();
  size_t at = FindReplay(0);
  if (at == all) co_return;
  while (at < all && loop_.now() < deadline && !cancelled_) {
    co_await loop_.Sleep(kLook);
    at = FindReplay(at);
  }
  (at < all ? context_.metrics.replays_missed : context_.metrics.replays_awaited).Add();
  fleet_ = router_.fleet.Get();
}

Task<Worker*> Selection::SelectByPrompt(TimePoint give_up_at) {
  cached_tokens_.reset();
  names_rank_ = false;
  const bool by_index = context_.cache_index != nullptr && prompt_.from != TokensFrom::kNone;
  const Duration replay_wait = context_.options.replay_wait;
  const bool replays = CatchUp::AwaitedInFleet(fleet_->pulse(), loop_.now(), replay_wait);
  if (by_index && tried_.empty() && replays) {
    auto awaiting_replays = AwaitReplays(give_up_at);
    co_await awaiting_replays;
    if (cancelled_) co_return nullptr;
  }
  // A retry does not wait again, because it was ahead of those that wait now.
  const bool may_wait = context_.steering.options.queue_threshold > 0 && tried_.empty();
  if (!may_wait || !context_.dispatch.Waiting(fields_.model)) {
    const auto patience = may_wait ? Steering::Patience::kMayWait : Steering::Patience::kMustDecide;
    const Steering::Choice choice = Decide(patience);
    if (choice.decision != nullptr) co_return Book(choice, Duration::zero());
    if (!any_worker_) co_return nullptr;
  }
  auto awaiting = AwaitTurn(give_up_at);
  co_return co_await awaiting;
}

// Waits until a rank has room, or until the timeout. The load is reserved before the next waiter
// wakes.
Task<Worker*> Selection::AwaitTurn(TimePoint give_up_at) {
  context_.metrics.queued.Add();
  const TimePoint begun = loop_.now();
  const TimePoint deadline = std::min(give_up_at, begun + context_.options.dispatch_timeout);
  DispatchQueue::Waiter waiter(context_.dispatch, loop_, fields_.model, deadline);
  waiting_ = &waiter;
  Worker* chosen = nullptr;
  for (bool done = cancelled_; !done;) {
    const WakeCause cause = co_await waiter;
    // A turn that was already granted when the request was cancelled still arrives.
    if (cancelled_) break;
    const bool late = cause == WakeCause::kTimedOut;
    if (late) context_.metrics.queue_timeouts.Add();
    if (loop_.now() >= give_up_at) {
      refusal_ = {504, "queue_timeout", "no worker had room for this request in time"};
      break;
    }
    const Steering::Choice choice =
        Decide(late ? Steering::Patience::kMustDecide : Steering::Patience::kMayWait);
    if (choice.decision != nullptr) chosen = Book(choice, loop_.now() - begun);
    done = chosen != nullptr || !any_worker_;
  }
  waiting_ = nullptr;
  co_return chosen;
}

// Records in the decision, if there is one, the source of the tokens and why some are missing.
Steering::Choice Selection::Explained(const Steering::Choice& choice,
                                      std::string_view narrowed_by) const {
  if (choice.decision == nullptr) return choice;
  choice.decision->narrowed_by = narrowed_by;
  choice.decision->tokens_from = Name(prompt_.from);
  choice.decision->known_tokens = static_cast<uint32_t>(prompt_.tokens.size());
  choice.decision->inexact = prompt_.inexact ? Name(*prompt_.inexact) : std::string_view();
  return choice;
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
  // A rank that the client names is passed on in the client's own header.
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

// If KV events are followed and the prompt is known, the request's outcome is compared with them.
void Selection::Testify(const Steering::Choice& choice) {
  if (context_.cache_index == nullptr || prompt_.tokens.empty()) return;
  const Testimony::About about{.fleet = *fleet_,
                               .model = fields_.model,
                               .exact = IsExact(prompt_),
                               .comparable = IsComparable(*choice.place.worker, fields_),
                               .narrowed = !choice.decision->narrowed_by.empty()};
  decision_ = choice.decision->number;
  testimony_.emplace(context_.cache_index->lost(), router_.steering, choice, Question(), about,
                     loop_.now());
}

void Selection::EndTestimony() {
  if (!testimony_) return;
  const std::optional<uint32_t> cached = usage_ ? FoundBy(*usage_) : std::nullopt;
  if (const auto outcome = testimony_->End(cached, loop_.now())) {
    context_.metrics.CountOutcome(outcome->predicted, outcome->found, outcome->waste);
    context_.steering.ring.Complete(decision_, cached, outcome->waste);
  }
  testimony_.reset();
}

std::span<const TokenId> Selection::TokensFor(const Worker& worker) const {
  if (!context_.options.forward_tokens || prompt_.from != TokensFrom::kTokenizer) return {};
  const EngineKind engine = worker.report.engine();
  // Another engine may have formatted the chat differently.
  if (engine != prompt_.engine || !TakesTokenIds(engine, route_, fields_)) return {};
  return prompt_.tokens;
}

bool Selection::IsHeld(const Worker& worker) {
  fleet_ = router_.fleet.Get();
  const Member* const member = fleet_->Find(worker.id());
  return member != nullptr &&
         (member->state == WorkerState::kProbing || member->state == WorkerState::kExcluded);
}

bool Selection::AnotherBeside(const Worker& failed) {
  if (router_.policy.mode() == RouterMode::kDirect) return false;
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
  EndTestimony();
  context_.dispatch.Wake();
}

void Selection::Cancel() {
  cancelled_ = true;
  if (waiting_ != nullptr) waiting_->Cancel();
}

// An error answer is no measure of the rank's speed, and adds nothing to its cache.
void Selection::OnFirstByte(int status) {
  if (!booked_ || status >= 300) return;
  booked_->FirstByte(loop_.now());
  if (testimony_) testimony_->FirstByte(loop_.now());
  prompt_ = {};  // no retry is possible any more
  context_.dispatch.Wake();
}

void Selection::OnPiece() {
  if (!booked_ || ++pieces_ < kPiecesAtOnce) return;
  booked_->Grow(pieces_);
  pieces_ = 0;
}

}  // namespace fathom
