#include "router/gateway/exchange.h"

#include <algorithm>

namespace fathom {
namespace {

constexpr std::string_view kEndedEarlyCode = "answer_aborted";
constexpr std::string_view kEndedEarlyMessage =
    "the engine ended the answer before it was complete; send the request again";

iovec PartOf(std::string_view text) { return {const_cast<char*>(text.data()), text.size()}; }

}  // namespace

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
  if (!retry_granted_ || client_left_) connection_.reset();
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
  const bool refused = opened.error().cause == NetCause::kRefused;
  if (refused) DoubtWorker();
  if (selection_.pinned() && !own_fault && (refused || !selection_.IsReady(worker))) {
    const Selection::Refusal lost = selection_.Lost();
    co_return FailWith({RetryReason::kConnect, lost.status, lost.code, lost.what});
  }
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

// A 5xx is retried on another worker, if there is one and the budget allows it; else the worker's
// own answer is passed on. A 500 may be caused by the request itself and may have crashed the
// worker, so it is retried only once.
bool Exchange::WantsAnotherWorker(Worker& worker) {
  const int status = connection_->head().status;
  if (status < 500) return false;
  failure_ = {status == 503 ? RetryReason::kBusy : RetryReason::kStatus, status, "worker_failed",
              "the worker answered with an error"};
  const size_t most = status == 500 ? std::min<uint32_t>(2, context_.options.retry_attempts)
                                    : context_.options.retry_attempts;
  retry_granted_ = selection_.tried() + 1 < most && MayTryAgain(worker);
  if (!retry_granted_) BlameWorker(worker);
  return retry_granted_;
}

Task<Exchange::Outcome> Exchange::Relay(Worker& worker) {
  const int status = connection_->head().status;
  selection_.OnHead(worker, status);
  // Before the client has the answer: its next request may arrive on another loop at once.
  if (const std::string_view session = selection_.session(); !session.empty()) {
    context_.affinity.Remember(session, worker.id(), loop_.now());
  }
  selection_.RememberHint(worker, status);
  const AnswerRelay::Patience patience{context_.options.first_byte_timeout,
                                       context_.options.idle_timeout, give_up_at_};
  const bool completion = route_ == Route::kChat || route_ == Route::kCompletions ||
                          route_ == Route::kInferenceGenerate;
  // A response that is only shown may have ended early long ago.
  const bool makes = form_ != AnswerForm::kResponses || route_ == Route::kResponses;
  const AnswerRelay::Watch watch{form_, makes ? context_.options.retry_answer_bytes : 0,
                                 context_.held_answers,
                                 route_ == Route::kResponses && fields_.store};
  AnswerRelay relay(client_, *connection_, context_.metrics, selection_, patience,
                    completion ? AnswerRelay::Kind::kCompletion : AnswerRelay::Kind::kOther,
                    usage_.wish(), watch);
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
  if (end == AnswerRelay::End::kEndedEarly && !relay.sent_anything()) {
    co_return FailWith({RetryReason::kAborted, 503, kEndedEarlyCode, kEndedEarlyMessage});
  }
  if (end == AnswerRelay::End::kWorkerFailed && !relay.sent_anything()) {
    co_return FailWith(relay.failure());
  }
  Finish(status);
  if (end != AnswerRelay::End::kComplete) {
    auto breaking = BreakOff(worker, relay, end);
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

// The client has a part of the answer, and gets an error in place of the rest.
Task<void> Exchange::BreakOff(Worker& worker, AnswerRelay& relay, AnswerRelay::End end) {
  if (end == AnswerRelay::End::kEndedEarly) {
    worker.aborted.Add();
    worker.breaker.Trip(loop_.now());
    ReportBrokenAnswer(worker, "the engine ended it early");
    auto breaking = relay.BreakOff(503, kEndedEarlyCode, kEndedEarlyMessage);
    co_await breaking;
    co_return;
  }
  if (relay.failure() != IoStatus::kTimeout) DoubtWorker();
  worker.breaker.OnFailure(loop_.now());
  ReportBrokenAnswer(worker, given_up_ ? "the worker's listener is closed and the answer is silent"
                             : relay.cut() ? "the stream ended without its closing event"
                                           : Describe(relay.failure()));
  auto breaking = relay.BreakOff(502, "worker_failed", "the worker failed while it was answering");
  co_await breaking;
}

void Exchange::ReportBrokenAnswer(Worker& worker, std::string_view reason) {
  worker.broken_streams.Add();
  context_.metrics.broken_answers.Add();
  const auto before = context_.broken_answer_lines.Next(worker.id().value(), loop_.now());
  if (!before) return;
  context_.log.Warn("An answer ended before it was complete", {{"request_id", request_id_},
                                                               {"worker_id", worker.id().value()},
                                                               {"url", worker.spec().url},
                                                               {"bytes", bytes_out_},
                                                               {"reason", reason},
                                                               {"similar_before", *before}});
}

}  // namespace fathom
