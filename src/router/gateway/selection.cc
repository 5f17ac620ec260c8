#include "router/gateway/selection.h"

#include <algorithm>

#include "base/text.h"
#include "codec/request_target.h"
#include "router/gateway/decision_text.h"
#include "router/gateway/response_id.h"
#include "router/gateway/token_body.h"

namespace fathom {
namespace {

// Pieces of an answer that are collected before the rank's load is updated.
constexpr uint32_t kPiecesAtOnce = 16;

// What became of a hint.
HintResult ResultOf(const Decision& decision) {
  if (!decision.hint) return HintResult::kUnknown;
  if (decision.hint_decided) return HintResult::kDecided;
  return decision.rank().rank == decision.hint->rank ? HintResult::kAgreed
                                                     : HintResult::kOutweighed;
}

constexpr Selection::Refusal kNotLocated{
    503, "response_not_located",
    "the worker that has this response could not be found in time; try again shortly"};
constexpr Selection::Refusal kNotLookedFor{
    503, "response_not_located",
    "too many unknown response ids are being looked for; try again shortly"};
constexpr Selection::Refusal kHolderNotReady{
    503, "no_workers", "the worker that has this response is not ready; try again shortly"};

// An engine's number of tokens is believed up to here.
constexpr uint32_t kMostContinued = 1u << 22;

// The response that the request is about; empty: none, or one that no router can find.
std::string ResponseOf(const RequestHead& head, Route route, const RequestFields& fields) {
  constexpr std::string_view kFolder = "/v1/responses/";
  if (route == Route::kResponses) {
    const std::string_view previous = fields.parts.previous_response_id;
    return previous.empty() ? "" : ReadResponseId(previous).value_or("");
  }
  if (route != Route::kOther) return {};
  std::string_view path = RequestTarget::Of(head.target).path;
  if (!path.starts_with(kFolder)) return {};
  path.remove_prefix(kFolder.size());
  return std::string(path.substr(0, path.find('/')));
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
      weights_(router.context.steering.options.weights),
      outcome_(router, route, fields) {
  if (const Header* session = head.headers.Find(HeaderName::kSessionId);
      session != nullptr && context_.affinity.enabled()) {
    session_ = session->value;
  }
  // In direct mode the client names the worker itself.
  if (router.policy.mode() != RouterMode::kDirect) response_ = ResponseOf(head, route, fields);
  if (!context_.hints.enabled() || !UsesLoad(router.policy.mode())) return;
  hint_ = FindHint(context_.options.session_hints, head.headers, fields);
  if (!hint_) return;
  hint_key_ = context_.hints.KeyOf({.kind = hint_->kind,
                                    .value = hint_->value,
                                    .part = hint_->part,
                                    .model = fields.model,
                                    .has_prompt = by_prompt_});
}

Task<bool> Selection::FindHolder() {
  if (const auto pin = context_.response_pins.Find(response_, loop_.now())) {
    holder_ = pin->worker;
    continued_ = {{pin->worker.value(), pin->dp_rank}, std::min(pin->tokens, kMostContinued)};
  } else {
    auto searching = router_.responses->Find(response_, fields_.model);
    const SearchResult result = co_await searching;
    context_.metrics.Searches(result.kind).Add();
    switch (result.kind) {
      case SearchResult::Kind::kFound:
        holder_ = result.worker;
        break;
      case SearchResult::Kind::kNowhere:
        refusal_ = Lost();
        break;
      case SearchResult::Kind::kUnanswered:
        refusal_ = kNotLocated;
        break;
      case SearchResult::Kind::kOverload:
        refusal_ = kNotLookedFor;
        break;
      case SearchResult::Kind::kAnyone:
        break;
    }
  }
  fleet_ = router_.fleet.Get();
  // A model that does not exist is the client's mistake.
  if (!fleet_->KnowsModel(fields_.model)) {
    holder_.reset();
    refusal_.reset();
  }
  if (holder_) line_.append(fields_.model).append(1, '\0').append(std::to_string(holder_->value()));
  co_return !refusal_;
}

Selection::Refusal Selection::Lost() const {
  if (route_ == Route::kResponses) {
    return {404, "previous_response_not_found",
            "no worker has the response that previous_response_id names: its worker is gone, or "
            "did not store it; send the whole conversation in input, without previous_response_id"};
  }
  return {404, "response_not_found",
          "no worker has this response: its worker is gone, or did not store it"};
}

// The worker that has the response, if it can be asked now; else refusal_ has the reason.
const Member* Selection::Holder() {
  const Member* const member = fleet_->Find(*holder_);
  if (member != nullptr && member->state == WorkerState::kProbing) {
    refusal_ = kHolderNotReady;
    return nullptr;
  }
  if (member != nullptr && member->Serves(fields_.model) && HoldsResponses(*member)) return member;
  refusal_ = Lost();
  return nullptr;
}

bool Selection::IsReady(const Worker& worker) const {
  const Member* const member = fleet_->Find(worker.id());
  return member != nullptr && member->state == WorkerState::kReady;
}

bool Selection::HasNoWorker() {
  return pinned() ? Holder() == nullptr : fleet_->Serving(fields_.model).empty();
}

bool Selection::AwaitsWorkers() {
  fleet_ = router_.fleet.Get();
  if (pinned()) {
    const Member* const member = fleet_->Find(*holder_);
    return member != nullptr && member->state == WorkerState::kProbing;
  }
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
  if (pinned()) {
    prompt_ = router_.prompts.Continue(fields_, route_, *fleet_, continued_.tokens);
    co_return Result<void>();
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
    router_.candidates.push_back({worker.id(), worker.in_flight_in_all()});
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
  const uint32_t in_flight = member->worker->in_flight_in_all();
  router_.eligible = {member};
  router_.candidates = {{member->worker->id(), in_flight}};
  return true;
}

void Selection::FindHinted() {
  hinted_ = hint_ ? context_.hints.Find(hint_key_, loop_.now()) : std::nullopt;
}

void Selection::RememberHint(const Worker& worker, int status) {
  if (!hint_ || status >= 300) return;
  const RankLabel rank{worker.id().value(), by_prompt_ ? dp_rank_ : 0};
  context_.hints.Remember(hint_key_, {rank, sent_life_, sent_mark_}, loop_.now());
}

// The hinted worker, if no other has fewer requests; else the policy's choice.
size_t Selection::ChooseByLoad() {
  FindHinted();
  const auto& candidates = router_.candidates;
  size_t chosen = router_.policy.Decide(candidates);
  if (!hint_) return chosen;
  const auto last = std::ranges::find_if(candidates, [&](const Candidate& candidate) {
    return hinted_ && candidate.id.value() == hinted_->value.rank.worker;
  });
  auto result = HintResult::kUnknown;
  if (last != candidates.end()) {
    const auto position = static_cast<size_t>(last - candidates.begin());
    const bool tie = last->in_flight <= candidates[chosen].in_flight;
    result = position == chosen ? HintResult::kAgreed
             : tie              ? HintResult::kDecided
                                : HintResult::kOutweighed;
    if (tie) chosen = position;
  }
  if (tried_.empty()) context_.metrics.Hints(hint_->kind, result).Add();
  return chosen;
}

Worker* Selection::SelectWithoutPrompt() {
  if (WantsTokens(router_.policy.mode()) && tried_.empty()) {
    context_.metrics.CountWithoutPrompt(route_);
  }
  if (router_.policy.mode() == RouterMode::kDirect) return SelectNamed();
  if (pinned()) {
    const Member* const member = tried_.empty() ? Holder() : nullptr;
    return member != nullptr ? member->worker.get() : nullptr;
  }
  if (!FindEligible()) return nullptr;
  NarrowToSession();
  return router_.eligible[ChooseByLoad()]->worker.get();
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
  std::optional<RouteQuestion::Hint> hint;
  if (hinted_) {
    const bool late = hint_->names_session && hinted_->idle < SessionHints::kEventsLate;
    hint = {.kind = hint_->kind, .last = hinted_->value, .events_late = late};
  }
  return {.tokens = prompt_.tokens,
          .seed = prompt_.seed,
          .by_text = prompt_.from == TokensFrom::kText,
          .known = prompt_.known,
          .prompt_tokens = static_cast<uint32_t>(prompt_.prompt_tokens),
          .space = Space(),
          .kind = prompt_.kind,
          .queued = context_.dispatch.Waiting(Line()),
          .hint = hint,
          .weights = weights_,
          .continued = continued_};
}

PromptSpace Selection::Space() const {
  if (!fields_.cache_salt.empty()) return PromptSpace::kSalted;
  return fleet_->IsAdapter(fields_.model) ? PromptSpace::kAdapter : PromptSpace::kPlain;
}

// The decision is null if no rank has room, or if no worker can serve the request.
Steering::Choice Selection::Decide(Steering::Patience patience) {
  fleet_ = router_.fleet.Get();
  if (pinned()) {
    const Member* const member = tried_.empty() ? Holder() : nullptr;
    any_worker_ = member != nullptr;
    if (!any_worker_) return {};
    router_.eligible = {member};
    return DecideAmong(patience, "response");
  }
  Roster& roster = FindRoster();
  any_worker_ = roster.present() > 0;
  if (!any_worker_) return {};
  FindHinted();
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
  const bool by_index = context_.cache_index != nullptr && prompt_.from != TokensFrom::kNone &&
                        prompt_.from != TokensFrom::kText;
  const Duration replay_wait = context_.options.replay_wait;
  const bool replays = CatchUp::AwaitedInFleet(fleet_->pulse(), loop_.now(), replay_wait);
  if (by_index && tried_.empty() && replays) {
    auto awaiting_replays = AwaitReplays(give_up_at);
    co_await awaiting_replays;
    if (cancelled_) co_return nullptr;
  }
  // A retry does not wait again, because it was ahead of those that wait now.
  const bool may_wait = context_.steering.options.queue_threshold > 0 && tried_.empty();
  if (!may_wait || !context_.dispatch.Waiting(Line())) {
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
  // Those that wait for one worker do not keep those waiting that any worker can serve.
  DispatchQueue::Waiter waiter(context_.dispatch, loop_, Line(), deadline);
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
  const bool by_text = prompt_.from == TokensFrom::kText;
  choice.decision->known_tokens = by_text ? 0 : static_cast<uint32_t>(prompt_.tokens.size());
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
  booked_.emplace(router_.steering, choice, Question(), answer, loop_.now());
  pieces_ = 0;
  dp_rank_ = choice.place.rank->number;
  const std::span<const PromptMark> marks = router_.steering.marks();
  sent_mark_ = marks.empty() ? PromptMark() : marks.back();
  sent_life_ = choice.place.rank->life();
  // A rank that the client names is passed on in the client's own header.
  names_rank_ = !wanted_rank_ && CanBeTold(*choice.place.worker);
  if (decision.tokens_known && !decision.by_text) cached_tokens_ = decision.cached_tokens();
  context_.metrics.Count(decision, router_.steering.stages(), tried_.empty());
  if (hint_ && tried_.empty()) context_.metrics.Hints(hint_->kind, ResultOf(decision)).Add();
  if (waited > Duration::zero()) context_.metrics.queue_wait.Observe(waited);
  context_.steering.ring.Keep(decision);
  outcome_.Begin(choice, Question(), prompt_, *fleet_, loop_.now());
  if (context_.options.log_selections && context_.log.Enabled(LogLevel::kInfo)) {
    context_.log.Info(SelectionLine(decision), {{"request_id", request_id_}});
  }
  return choice.place.worker;
}

std::span<const TokenId> Selection::TokensFor(const Worker& worker) const {
  if (!context_.options.forward_tokens || prompt_.from != TokensFrom::kFiles) return {};
  const EngineKind engine = worker.report.engine();
  // Another engine may have formatted the chat differently.
  if (engine != prompt_.engine || !TakesTokenIds(engine, route_, fields_)) return {};
  return prompt_.tokens;
}

bool Selection::IsHeld(const Worker& worker) {
  fleet_ = router_.fleet.Get();
  const Member* const member = fleet_->Find(worker.id());
  if (member == nullptr) return false;
  return member->checked == WorkerState::kProbing ||
         (member->checked == WorkerState::kExcluded && !pinned());
}

bool Selection::AnotherBeside(const Worker& failed) {
  if (router_.policy.mode() == RouterMode::kDirect || pinned()) return false;
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
  outcome_.End(loop_.now());
  context_.dispatch.Wake();
}

void Selection::Cancel() {
  cancelled_ = true;
  if (waiting_ != nullptr) waiting_->Cancel();
}

void Selection::OnHead(const Worker& worker, int status) {
  answering_ = worker.id();
  if (response_.empty()) return;
  const bool deleted = head_.method == "DELETE" && status < 300;
  // An engine may have no route to cancel one: that 404 is not about the response.
  const bool missing = status == 404 && (route_ == Route::kResponses || head_.method != "POST");
  if (deleted || missing) return context_.response_pins.Forget(response_, answering_);
  if (status < 300) context_.response_pins.Remember(response_, answering_, loop_.now());
}

void Selection::OnResponse(const std::string& id) {
  made_ = id;
  context_.response_pins.Remember(id, answering_, loop_.now());
}

void Selection::OnUsage(const EngineUsage& usage) {
  outcome_.SetUsage(usage);
  if (made_.empty()) return;
  const uint64_t tokens = usage.prompt_tokens + usage.output_tokens;
  context_.response_pins.SetContext(
      made_,
      {answering_, dp_rank_, static_cast<uint32_t>(std::min<uint64_t>(tokens, kMostContinued))});
}

// An error answer is no measure of the rank's speed, and adds nothing to its cache.
void Selection::OnFirstByte(int status) {
  if (!booked_ || status >= 300) return;
  booked_->FirstByte(loop_.now());
  outcome_.FirstByte(prompt_, *fleet_, loop_.now());
  prompt_ = {};  // no retry is possible any more
  context_.dispatch.Wake();
}

void Selection::OnPiece() {
  if (!booked_ || ++pieces_ < kPiecesAtOnce) return;
  booked_->Grow(pieces_);
  pieces_ = 0;
}

}  // namespace fathom
