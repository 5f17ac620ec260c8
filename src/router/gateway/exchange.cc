#include "router/gateway/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "router/gateway/api_error.h"

namespace fathom {
namespace {

UsageQuestion::Policy UsagePolicy(const Selection& selection, Route route,
                                  const GatewayOptions& options) {
  if (!selection.by_prompt()) return UsageQuestion::Policy::kIgnore;
  // Streams of the other APIs always have it.
  if (route != Route::kChat && route != Route::kCompletions) {
    return UsageQuestion::Policy::kOnlyRead;
  }
  return options.ask_usage ? UsageQuestion::Policy::kMayAsk : UsageQuestion::Policy::kOnlyRead;
}

// The member of the request that an error is about.
std::string_view ParamOf(std::string_view code) {
  if (code == "model_not_found" || code == "model_not_served_here") return "model";
  return code == "previous_response_not_found" ? "previous_response_id" : "";
}

}  // namespace

Exchange::Exchange(Gateway& gateway, ServerConnection& client, const PassedRoute& route,
                   const RequestFields& fields, std::string_view body)
    : gateway_(gateway),
      context_(gateway.context_),
      loop_(gateway.loop_),
      client_(client),
      route_(route.route),
      form_(route.form),
      fields_(fields),
      body_(body),
      give_up_at_(client.request_started() + context_.options.request_timeout),
      request_id_(RequestIdOf(client.head(), gateway.ids_, made_id_)),
      selection_(gateway.router_, client.head(), route_, fields, request_id_),
      usage_(route_, fields, UsagePolicy(selection_, route_, context_.options)),
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
  Answer answer = ApiError(form_, status, code, message, ParamOf(code));
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
  if (IsOthers()) {
    auto serving = ServeByPeer();
    co_await serving;
    co_return;
  }
  if (selection_.names_response()) {
    auto finding = selection_.FindHolder();
    const bool found = co_await finding;
    if (client_left_) co_return;
    if (!found) {
      auto answering = AnswerFailure();
      co_await answering;
      co_return;
    }
  }
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
    // The worker may leave the fleet while it is asked.
    const std::shared_ptr<const FleetSnapshot> fleet = selection_.snapshot();
    auto attempting = Attempt(*worker);
    const Outcome outcome = co_await attempting;
    selection_.Release();
    if (outcome == Outcome::kHeld) {
      auto awaiting_interview = AwaitFleet();
      co_await awaiting_interview;
      continue;
    }
    spare_.reset();  // of the attempt before: this one was made in its place
    if (outcome != Outcome::kFailed) co_return;
    if (connection_) spare_ = SpareAnswer{std::move(connection_), worker, fleet};
    const bool again = std::exchange(retry_granted_, false) || MayTryAgain(*worker);
    selection_.Exclude(*worker);
    if (!again) break;
    context_.metrics.Retries(failure_->reason).Add();
  }
  selection_.Release();
  if (client_left_) co_return;
  auto ending = spare_ ? PassOnSpare() : AnswerFailure();
  co_await ending;
}

// No other worker was asked after all: the client gets the error that the last one answered.
Task<void> Exchange::PassOnSpare() {
  worker_ = spare_->worker;
  connection_ = std::move(spare_->connection);
  auto relaying = Relay(*worker_);
  const Outcome relayed = co_await relaying;
  connection_.reset();
  worker_ = nullptr;
  if (relayed != Outcome::kFailed || client_left_) co_return;
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
  const Failure no_worker{RetryReason::kConnect, 503, "no_workers",
                          "no worker is ready for this request; try again shortly"};
  const Failure failure = failure_.value_or(no_worker);
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

}  // namespace fathom
