#include "router/gateway/exchange.h"

#include <fmt/format.h>

#include <algorithm>

#include "codec/request_target.h"
#include "router/gateway/openai_error.h"
#include "router/gateway/token_body.h"

namespace fathom {
namespace {

iovec PartOf(std::string_view text) { return {const_cast<char*>(text.data()), text.size()}; }

UsageQuestion::Policy UsagePolicy(const Selection& selection, const GatewayOptions& options) {
  if (!selection.by_prompt()) return UsageQuestion::Policy::kIgnore;
  return options.ask_usage ? UsageQuestion::Policy::kMayAsk : UsageQuestion::Policy::kOnlyRead;
}

}  // namespace

Exchange::Exchange(Gateway& gateway, ServerConnection& client, Route route,
                   const RequestFields& fields, std::string_view body)
    : gateway_(gateway),
      context_(gateway.context_),
      loop_(gateway.loop_),
      client_(client),
      route_(route),
      fields_(fields),
      body_(body),
      give_up_at_(client.request_started() + context_.options.request_timeout),
      request_id_(RequestIdOf(client.head(), gateway.ids_, made_id_)),
      selection_(gateway.router_, client.head(), route, fields, request_id_),
      usage_(route, fields, UsagePolicy(selection_, context_.options)),
      asked_at_(loop_.now()) {
  next_ = gateway.exchanges_;
  if (next_ != nullptr) next_->link_ = &next_;
  link_ = &gateway.exchanges_;
  gateway.exchanges_ = this;
}

Exchange::~Exchange() {
  *link_ = next_;
  if (next_ != nullptr) next_->link_ = link_;
}

TimePoint Exchange::Deadline(Duration wait) const {
  return std::min(loop_.now() + wait, give_up_at_);
}

void Exchange::OnHangup() {
  if (client_left_) return;
  client_left_ = true;
  client_.Cancel();  // the relay may be waiting for the client instead of the worker
  if (connection_) connection_->Cancel();
  // Last, because each can end this exchange at once. It waits in at most one place.
  if (waiting_ != nullptr) return waiting_->Cancel();
  selection_.Cancel();
}

void Exchange::GiveUpIfSilent() {
  if (worker_ == nullptr || !connection_ || given_up_) return;
  const int64_t gone = worker_->gone_since.load(std::memory_order_relaxed);
  if (gone == 0) return;
  const TimePoint progress = relay_ != nullptr ? relay_->last_progress() : asked_at_;
  const TimePoint silent_since = std::max(TimePoint(Duration(gone)), progress);
  if (loop_.now() - silent_since < context_.options.silent_stream_grace) return;
  given_up_ = true;
  connection_->Cancel();
}

Task<void> Exchange::Run() {
  client_.socket().Watch(this);
  client_left_ = client_.socket().hung_up();
  context_.retry_budget.OnRequest();
  bool entered = !client_left_ && context_.admission.TryEnter();
  if (!entered && !client_left_) {
    auto entering = Enter();
    entered = co_await entering;
  }
  if (entered) {
    context_.metrics.in_flight.Add(1);
    auto serving = Serve();
    co_await serving;
    context_.metrics.in_flight.Add(-1);
    context_.admission.Leave();
  }
  if (client_left_) {
    context_.metrics.client_left.Add();
    client_.CloseAfterwards();
  }
  client_.socket().Watch(nullptr);
}

// Waits for a place. False: there is none, and the client, if still connected, has been answered.
Task<bool> Exchange::Enter() {
  Admission::Wait wait(context_.admission, loop_, Deadline(context_.options.queue_timeout));
  waiting_ = &wait;
  const AdmissionVerdict verdict = co_await wait;
  waiting_ = nullptr;
  if (verdict == AdmissionVerdict::kAdmitted) {
    if (!client_left_) co_return true;
    context_.admission.Leave();
    co_return false;
  }
  if (verdict == AdmissionVerdict::kCancelled) co_return false;
  context_.metrics.rejected_full.Add();
  auto refusing = Refuse(429, "overloaded", "too many requests are in flight; try again shortly");
  co_await refusing;
  co_return false;
}

Task<void> Exchange::Refuse(int status, std::string_view code, std::string_view message) {
  Answer answer = OpenAiError(status, code, message, code == "model_not_found" ? "model" : "");
  answer.headers.emplace_back("x-request-id", std::string(request_id_));
  Finish(status);
  auto responding = client_.Respond(answer);
  co_await responding;
}

// No worker can serve the request yet, but one that might is being probed: at the start, and later
// when the first worker of a model joins. True unless the client has left in the meantime.
Task<bool> Exchange::AwaitFleet() {
  constexpr Duration kLook = std::chrono::milliseconds(20);
  const TimePoint deadline = Deadline(context_.options.fleet_wait);
  while (selection_.AwaitsWorkers() && loop_.now() < deadline && !client_left_) {
    co_await loop_.Sleep(kLook);
  }
  co_return !client_left_;
}

Task<void> Exchange::Serve() {
  if (selection_.AwaitsWorkers()) {
    auto awaiting = AwaitFleet();
    const bool still_here = co_await awaiting;
    if (!still_here) co_return;
  }
  if (selection_.by_prompt() && selection_.HasNoWorker()) {
    auto answering = AnswerFailure();
    co_await answering;
    co_return;
  }
  if (selection_.by_prompt()) {
    auto preparing = selection_.Prepare();
    const auto prepared = co_await preparing;
    if (client_left_) co_return;
    if (!prepared) {
      auto refusing = Refuse(400, "bad_routing_override", prepared.error().what);
      co_await refusing;
      co_return;
    }
  }
  for (;;) {
    Worker* worker = nullptr;
    if (selection_.by_prompt()) {
      auto selecting = selection_.SelectByPrompt(give_up_at_);
      worker = co_await selecting;
    } else {
      worker = selection_.SelectWithoutPrompt();
    }
    if (client_left_ || worker == nullptr) break;
    auto attempting = Attempt(*worker);
    const Outcome outcome = co_await attempting;
    selection_.Release();
    if (outcome == Outcome::kHeld) {
      auto awaiting_interview = AwaitFleet();
      co_await awaiting_interview;
      continue;
    }
    if (outcome != Outcome::kFailed) co_return;
    const bool again = MayTryAgain(*worker);
    selection_.Exclude(*worker);
    if (!again) break;
    context_.metrics.Retries(failure_->reason).Add();
  }
  selection_.Release();
  if (client_left_) co_return;
  auto answering = AnswerFailure();
  co_await answering;
}

Task<void> Exchange::AnswerFailure() {
  if (const auto& refusal = selection_.refusal(); refusal && !failure_) {
    auto refusing = Refuse(refusal->status, refusal->code, refusal->what);
    co_await refusing;
    co_return;
  }
  if (!failure_ && !selection_.fleet().KnowsModel(fields_.model)) {
    const std::string message = fmt::format("no worker serves the model '{}'", fields_.model);
    auto refusing = Refuse(404, "model_not_found", message);
    co_await refusing;
    co_return;
  }
  const Failure nobody{RetryReason::kConnect, 503, "no_workers",
                       "no worker is ready for this request; try again shortly"};
  const Failure failure = failure_.value_or(nobody);
  auto refusing = Refuse(failure.status, failure.code, failure.what);
  co_await refusing;
}

bool Exchange::MayTryAgain(const Worker& failed) {
  const size_t tried = selection_.tried() + 1;
  if (tried >= context_.options.retry_attempts || loop_.now() >= give_up_at_) return false;
  if (!selection_.AnotherBeside(failed)) return false;
  if (context_.retry_budget.TryWithdraw()) return true;
  context_.metrics.retries_denied.Add();
  return false;
}

// Sends the request to one worker and, if it answers, relays the answer.
Task<Exchange::Outcome> Exchange::Attempt(Worker& worker) {
  worker_ = &worker;
  given_up_ = false;
  worker.in_flight.fetch_add(1, std::memory_order_relaxed);
  worker.requests.Add();
  worker.breaker.OnSend(loop_.now());
  Outcome outcome = Outcome::kFailed;
  connection_ = gateway_.pool_.Take(worker.id());
  bool fresh = connection_ == nullptr;
  if (!fresh) {
    auto asking = Ask(worker);
    outcome = co_await asking;
    // A kept connection that the worker was closing at that moment is no evidence against the
    // worker.
    fresh = outcome == Outcome::kFailed && !answer_started_ &&
            failure_->reason == RetryReason::kBroken && !client_left_;
  }
  if (fresh && MustReconsider(worker)) {
    outcome = Outcome::kHeld;
  } else if (fresh) {
    auto asking = ConnectAndAsk(worker);
    outcome = co_await asking;
  }
  // The engine may have refused the router's usage question, which is not part of the client's
  // request.
  if (outcome == Outcome::kFailed && failure_->reason == RetryReason::kQuestion && !client_left_) {
    usage_.Drop();
    context_.metrics.Retries(RetryReason::kQuestion).Add();
    auto asking = ConnectAndAsk(worker);
    outcome = co_await asking;
  }
  if (client_left_) outcome = Outcome::kClientLeft;
  if (outcome == Outcome::kFailed) BlameWorker(worker);
  connection_.reset();
  worker_ = nullptr;
  worker.in_flight.fetch_sub(1, std::memory_order_relaxed);
  co_return outcome;
}

Task<Exchange::Outcome> Exchange::ConnectAndAsk(Worker& worker) {
  auto connecting = Connect(worker);
  const Outcome connected = co_await connecting;
  if (connected != Outcome::kOk) co_return connected;
  auto asking = Ask(worker);
  const Outcome asked = co_await asking;
  co_return asked;
}

// A connection that was kept may have told, just now, that its process has ended.
bool Exchange::MustReconsider(const Worker& worker) {
  constexpr uint8_t kMost = 3;
  if (held_ >= kMost || !selection_.IsHeld(worker)) return false;
  ++held_;
  failure_.reset();
  return true;
}

// The process that the connection led to may be gone, and another one in its place.
void Exchange::DoubtWorker() {
  if (context_.sizes != nullptr && worker_ != nullptr && !client_left_) {
    context_.sizes->Doubt(*worker_, loop_.now());
  }
}

void Exchange::BlameWorker(Worker& worker) {
  if (!failure_->blames_worker) return;
  switch (failure_->reason) {
    case RetryReason::kBusy:
      worker.busy.Add();
      return;
    case RetryReason::kAborted:
      worker.aborted.Add();
      worker.breaker.Trip(loop_.now());
      return;
    default:
      worker.failures.Add();
      worker.breaker.OnFailure(loop_.now());
  }
}

Exchange::Outcome Exchange::FailWith(const Failure& failure) {
  failure_ = failure;
  if (context_.log.Enabled(LogLevel::kDebug) && worker_ != nullptr && !client_left_) {
    context_.log.Debug("Attempt failed", {{"request_id", request_id_},
                                          {"worker_id", worker_->id().value()},
                                          {"reason", Name(failure.reason)}});
  }
  return Outcome::kFailed;
}

Exchange::Outcome Exchange::FailWith(IoStatus status) {
  if (given_up_) {
    return FailWith({RetryReason::kGone, 502, "worker_gone", "the worker is gone"});
  }
  if (status == IoStatus::kTimeout) {
    return FailWith(
        {RetryReason::kTimeout, 504, "worker_timeout", "the worker did not answer in time"});
  }
  DoubtWorker();
  return FailWith({RetryReason::kBroken, 502, "worker_failed",
                   "the connection to the worker failed before "
                   "it answered"});
}

Task<Exchange::Outcome> Exchange::Connect(Worker& worker) {
  const Failure unreachable{RetryReason::kConnect, 502, "worker_unreachable",
                            "no worker could be reached"};
  const Failure no_resources{RetryReason::kConnect, 503, "router_overloaded",
                             "the router has no free descriptor or port for a connection",
                             /*blames_worker=*/false};
  const std::shared_ptr<const Endpoint> endpoint = context_.directory.Find(worker.id());
  if (!endpoint) co_return FailWith(unreachable);
  connection_ = std::make_unique<ClientConnection>(loop_, context_.options.max_head);
  const TimePoint deadline = Deadline(context_.options.connect_timeout);
  auto opening = connection_->Open(*endpoint, context_.resolver, deadline);
  const auto opened = co_await opening;
  if (opened) co_return Outcome::kOk;
  // A circuit breaker must not open because of what this process lacks.
  const bool own_fault = opened.error().cause == NetCause::kNoResources;
  if (opened.error().cause == NetCause::kRefused) DoubtWorker();
  co_return FailWith(own_fault ? no_resources : unreachable);
}

Task<Exchange::Outcome> Exchange::Ask(Worker& worker) {
  connection_->BeginAnswer();
  answer_started_ = false;
  asked_at_ = loop_.now();
  usage_.Consider(worker.usage);
  std::array<std::string_view, 3> body = {BodyFor(worker)};
  if (usage_.asks()) {
    body = WithUsageQuestion(body[0], fields_);
    context_.metrics.usage_asked.Add();
  }
  const size_t body_bytes = body[0].size() + body[1].size() + body[2].size();
  BuildRequestHead(worker, body_bytes);
  std::array<iovec, 4> every = {PartOf(request_head_.text()), PartOf(body[0]), PartOf(body[1]),
                                PartOf(body[2])};
  const std::span<iovec> parts(every.data(), usage_.asks() ? 4 : 2);
  const size_t whole = request_head_.size() + body_bytes;
  const TimePoint deadline = Deadline(context_.options.idle_timeout);
  // A worker that answers before it has read everything (413, for example) will not read the rest.
  const IoResult sent = co_await connection_->socket().WriteUntilInput(parts, deadline);
  if (!sent.ok()) co_return FailWith(sent.status);
  sent_whole_ = sent.bytes == whole;
  context_.metrics.bytes_from_clients.Add(body_.size());
  Buffer& in = connection_->in();
  const TimePoint answer_deadline = Deadline(context_.options.first_byte_timeout);
  for (bool complete = false; !complete;) {
    const IoResult read = co_await connection_->socket().Read(in.room(), answer_deadline);
    if (!read.ok()) co_return FailWith(read.status);
    answer_started_ = true;
    in.Commit(read.bytes);
    const auto parsed = connection_->ParseHead(false);
    if (!parsed) co_return FailWith(IoStatus::kError);
    complete = *parsed;
  }
  const int status = connection_->head().status;
  usage_.Answered(status);
  if (usage_.MayBeToBlame(status)) {
    co_return FailWith({RetryReason::kQuestion, status, "worker_failed",
                        "the worker refused the "
                        "request"});
  }
  if (WantsAnotherWorker(worker)) co_return Outcome::kFailed;
  auto relaying = Relay(worker);
  const Outcome relayed = co_await relaying;
  co_return relayed;
}

// A 5xx is retried on another worker, if there is one; the last worker's answer is passed on. A 500
// may be caused by the request itself and may have crashed the worker, so it is retried only once.
bool Exchange::WantsAnotherWorker(Worker& worker) {
  const int status = connection_->head().status;
  if (status < 500) return false;
  failure_ = {status == 503 ? RetryReason::kBusy : RetryReason::kStatus, status, "worker_failed",
              "the worker answered with an error"};
  const size_t most = status == 500 ? std::min<uint32_t>(2, context_.options.retry_attempts)
                                    : context_.options.retry_attempts;
  const bool another = selection_.tried() + 1 < most && selection_.AnotherBeside(worker);
  if (!another) BlameWorker(worker);
  return another;
}

Task<Exchange::Outcome> Exchange::Relay(Worker& worker) {
  const int status = connection_->head().status;
  // Before the client has the answer: its next request may arrive on another loop at once.
  if (const std::string_view session = selection_.session(); !session.empty()) {
    context_.affinity.Remember(session, worker.id(), loop_.now());
  }
  const AnswerRelay::Patience patience{context_.options.first_byte_timeout,
                                       context_.options.idle_timeout, give_up_at_};
  const bool completion = route_ == Route::kChat || route_ == Route::kCompletions;
  AnswerRelay relay(client_, *connection_, context_.metrics, selection_, patience,
                    completion ? AnswerRelay::Kind::kCompletion : AnswerRelay::Kind::kOther,
                    usage_.wish());
  relay_ = &relay;
  BuildAnswerHeaders(worker);
  auto running = relay.Run(request_head_.text());
  const AnswerRelay::End end = co_await running;
  relay_ = nullptr;
  bytes_out_ = relay.bytes();
  context_.metrics.bytes_to_clients.Add(bytes_out_);
  if (end == AnswerRelay::End::kClientLeft || client_left_) {
    client_left_ = true;
    co_return Outcome::kClientLeft;
  }
  if (end == AnswerRelay::End::kEmptyAbort) {
    co_return FailWith(
        {RetryReason::kAborted, 503, "worker_draining", "the worker is shutting down"});
  }
  if (end == AnswerRelay::End::kWorkerFailed && !relay.sent_anything()) {
    co_return FailWith(relay.failure());
  }
  Finish(status);
  if (end == AnswerRelay::End::kWorkerFailed) {
    if (relay.failure() != IoStatus::kTimeout) DoubtWorker();
    ReportBrokenAnswer(worker, relay.failure());
    auto breaking = relay.BreakOff();
    co_await breaking;
    co_return Outcome::kOk;
  }
  if (const UsageFilter* const seen = relay.stream_usage()) usage_.Learn(*seen);
  if (status < 500) worker.breaker.OnSuccess();
  if (sent_whole_ && connection_->Reusable()) {
    gateway_.pool_.Put(worker.id(), std::move(connection_));
  } else if (connection_->ClosedUnannounced()) {
    DoubtWorker();
  }
  co_return Outcome::kOk;
}

void Exchange::ReportBrokenAnswer(Worker& worker, IoStatus status) {
  worker.broken_streams.Add();
  worker.breaker.OnFailure(loop_.now());
  context_.metrics.broken_answers.Add();
  const auto before = context_.broken_answer_lines.Next(worker.id().value(), loop_.now());
  if (!before) return;
  context_.log.Warn("An answer ended before it was complete",
                    {{"request_id", request_id_},
                     {"worker_id", worker.id().value()},
                     {"url", worker.spec().url},
                     {"bytes", bytes_out_},
                     {"reason", given_up_ ? "the worker's listener is closed and the answer is "
                                            "silent"
                                          : Describe(status)},
                     {"similar_before", *before}});
}

// The client's bytes, unless the prompt is sent as token ids.
std::string_view Exchange::BodyFor(const Worker& worker) {
  const std::span<const TokenId> tokens = selection_.TokensFor(worker);
  if (tokens.empty()) {
    if (context_.options.literal_user_text && route_ == Route::kChat) {
      context_.metrics.not_literal.Add();
      context_.tokenizers.complaints().NotLiteral(fields_.model, loop_.now());
    }
    return body_;
  }
  token_body_ = WithTokenIds(body_, fields_, route_, worker.report.engine(), tokens);
  context_.metrics.forwarded_as_tokens.Add();
  return token_body_;
}

void Exchange::BuildRequestHead(const Worker& worker, size_t body_bytes) {
  const RequestHead& head = client_.head();
  const WorkerSpec& spec = worker.spec();
  const RequestTarget target = RequestTarget::Of(head.target);
  request_head_.Clear();
  request_head_.Add(head.method, " ", spec.base_path, target.path, target.query,
                    " HTTP/1.1\r\nhost: ", spec.host_header, "\r\n");
  const bool own_key = !spec.api_key.empty();
  for (const Header& header : head.headers.all()) {
    switch (header.id) {
      case HeaderName::kHost:
      case HeaderName::kContentLength:
      case HeaderName::kExpect:
      case HeaderName::kRequestId:
      case HeaderName::kFathomWorker:
      case HeaderName::kFathomRouting:
        continue;
      case HeaderName::kDataParallelRank:
        if (selection_.names_rank()) continue;
        break;
      case HeaderName::kAuthorization:
        // The router's own keys must not reach workers.
        if (own_key || context_.api_keys.required()) continue;
        break;
      default:
        if (IsHopByHop(header, head.headers)) continue;
        if (context_.api_keys.required() && EqualsIgnoreCase(header.name, KeyRing::kApiKeyHeader)) {
          continue;
        }
        if (usage_.asks() && EqualsIgnoreCase(header.name, "accept-encoding")) continue;
    }
    request_head_.Add(header.name, ": ", header.value, "\r\n");
  }
  // The answer must be uncompressed, so that usage can be removed from it.
  if (usage_.asks()) request_head_.Add("accept-encoding: identity\r\n");
  if (own_key) request_head_.Add("authorization: Bearer ", spec.api_key, "\r\n");
  if (selection_.names_rank()) {
    request_head_.Add("x-data-parallel-rank: ", Decimal(selection_.dp_rank()).text(), "\r\n");
  }
  request_head_.Add("x-request-id: ", request_id_,
                    "\r\ncontent-length: ", Decimal(body_bytes).text(), "\r\n\r\n");
}

// The headers that are added to the worker's own.
void Exchange::BuildAnswerHeaders(const Worker& worker) {
  request_head_.Clear();
  request_head_.Add("x-request-id: ", request_id_, "\r\n");
  if (!context_.options.routing_headers) return;
  request_head_.Add("x-fathom-worker: ", worker.id_text(), "\r\n");
  if (!selection_.by_prompt()) return;
  request_head_.Add("x-fathom-dp-rank: ", Decimal(selection_.dp_rank()).text(), "\r\n");
  if (const auto cached = selection_.cached_tokens()) {
    request_head_.Add("x-fathom-cached-tokens: ", Decimal(*cached).text(), "\r\n");
  }
}

void Exchange::Finish(int status) {
  const Duration took = loop_.now() - client_.request_started();
  context_.metrics.CountRequest(route_, status);
  context_.metrics.duration.Observe(took);
  if (!context_.options.log_requests) return;
  context_.log.Info("Request", {{"request_id", request_id_},
                                {"route", Name(route_)},
                                {"model", fields_.model},
                                {"status", status},
                                {"worker_id", worker_ != nullptr ? worker_->id().value() : 0},
                                {"attempts", selection_.tried() + (worker_ != nullptr ? 1 : 0)},
                                {"bytes", bytes_out_},
                                {"seconds", Seconds(took)}});
}

}  // namespace fathom
