#include "lab/mock/engine_driver.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace fathom {
namespace {

constexpr int kStepsPerTurn = 64;  // others on the loop get a turn, too
constexpr Duration kMostLag = std::chrono::milliseconds(50);
// vLLM's.
constexpr double kFirstTokenBounds[] = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
                                        0.25,  0.5,   0.75, 1,    2.5,  5,    7.5,  10,
                                        20,    40,    80,   160,  640,  2560};

}  // namespace

Ticket::~Ticket() { driver_.Forget(*this); }

Result<void> Ticket::Submit(EngineRequest request) {
  TRY(const SequenceId sequence, driver_.Submit(*this, std::move(request)));
  sequences_.push_back(sequence);
  return {};
}

void Ticket::Cancel(uint32_t choice) {
  driver_.Cancel(sequences_[choice]);
  std::erase_if(tokens_, [choice](const Token& token) { return token.choice == choice; });
}

std::optional<Ticket::Token> Ticket::Take() {
  if (tokens_.empty()) return std::nullopt;
  const Token token = tokens_.front();
  tokens_.pop_front();
  return token;
}

EngineDriver::EngineDriver(Loop& loop, const EngineOptions& options, const TimingProfile& profile,
                           double speedup)
    : loop_(loop),
      core_(options, profile),
      speedup_(speedup),
      alarm_(*this),
      first_token_times_(kFirstTokenBounds) {}

EngineDriver::~EngineDriver() { CHECK(places_.empty()); }

void EngineDriver::Freeze() {
  frozen_ = true;
  alarm_.Disarm();
}

Result<SequenceId> EngineDriver::Submit(Ticket& ticket, EngineRequest request) {
  TRY(const SequenceId sequence, core_.Submit(std::move(request)));
  const auto choice = static_cast<uint32_t>(ticket.sequences_.size());
  places_.emplace(sequence, Place{&ticket, choice, loop_.now(), false});
  // The step begins with the next turn, so that what is submitted together runs together.
  if (!in_step_ && !pumping_ && !frozen_ && !alarm_.armed()) {
    end_ = loop_.now();
    loop_.timers().Arm(alarm_, end_);
  }
  Publish();
  return sequence;
}

void EngineDriver::Cancel(SequenceId sequence) {
  if (places_.erase(sequence) == 0) return;
  core_.Cancel(sequence);
  Publish();
}

void EngineDriver::Forget(Ticket& ticket) {
  for (const SequenceId sequence : ticket.sequences_) Cancel(sequence);
  if (ticket.due_) std::ranges::replace(due_, &ticket, nullptr);
}

void EngineDriver::Pump() {
  pumping_ = true;
  for (int i = 0; i < kStepsPerTurn && !frozen_; ++i) {
    if (in_step_ && end_ > loop_.now()) break;
    if (in_step_) FinishStep();
    if (!BeginStep()) break;
  }
  pumping_ = false;
  if (in_step_ && !frozen_) loop_.timers().Arm(alarm_, end_);
}

// Where the last step ended, unless that is too long ago.
bool EngineDriver::BeginStep() {
  if (!core_.Step(step_)) return false;
  in_step_ = true;
  const auto lasts = static_cast<int64_t>(static_cast<double>(step_.duration.count()) / speedup_);
  end_ = std::max(end_, loop_.now() - kMostLag) + Duration(lasts);
  Remember();
  Publish();
  return true;
}

void EngineDriver::FinishStep() {
  in_step_ = false;
  for (const EngineOutput& output : step_.outputs) HandOut(output);
  if (listener_ && !step_.events.empty()) listener_(step_.events);
  Publish();
  // A ticket may go while its client is told, and take nobody else with it.
  for (size_t i = 0; i < due_.size(); ++i) {
    Ticket* const ticket = std::exchange(due_[i], nullptr);
    if (ticket == nullptr) continue;
    ticket->due_ = false;
    ticket->watcher_.OnTokens();
  }
  due_.clear();
}

void EngineDriver::HandOut(const EngineOutput& output) {
  const auto found = places_.find(output.sequence);
  if (found == places_.end()) return;  // cancelled during the step
  Place& place = found->second;
  if (!std::exchange(place.started, true)) {
    first_token_times_.Observe(loop_.now() - place.submitted);
  }
  Ticket& ticket = *place.ticket;
  ticket.tokens_.push_back({.choice = place.choice,
                            .token = output.token,
                            .finished = output.finished,
                            .cached_tokens = output.cached_tokens,
                            .preempted = output.preempted});
  if (!std::exchange(ticket.due_, true)) due_.push_back(&ticket);
  if (output.finished) places_.erase(found);
}

void EngineDriver::Remember() {
  if (iterations_.size() == kIterationsKept) iterations_.pop_front();
  iterations_.push_back({.number = core_.counters().steps,
                         .running = core_.running(),
                         .waiting = core_.waiting(),
                         .decoding = step_.load.decoding,
                         .new_tokens = step_.load.new_tokens,
                         .used_blocks = core_.pool().usable_blocks() - core_.pool().free_blocks(),
                         .duration = step_.duration});
}

std::vector<Iteration> EngineDriver::TakeIterations() {
  std::vector<Iteration> taken(iterations_.begin(), iterations_.end());
  iterations_.clear();
  return taken;
}

// A sequence whose last token the step makes is running until the step is over.
void EngineDriver::Publish() {
  EngineStatistics now;
  now.waiting = core_.waiting();
  now.running = places_.size() - std::min(places_.size(), core_.waiting());
  now.cache_usage = core_.cache_usage();
  now.counters = core_.counters();
  const std::lock_guard lock(mutex_);
  statistics_ = now;
}

EngineStatistics EngineDriver::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

}  // namespace fathom
