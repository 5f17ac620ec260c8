// Which worker, and which of its ranks, gets this request next?
//
// In the modes that use the prompt: tokens first (bounded by --tokenize-timeout), then, just after
// a worker has joined, its replay of KV events (bounded by --kv-events-replay-wait), then a
// decision with the state at that moment, or a place in the dispatch queue until a rank has room.
// The chosen rank's load is reserved until Release(). In the other modes a worker is selected by
// turn, at random or by load, and nothing is reserved.
//
//   Select...  for this request: waits if it must, and reserves the load
//   Decide     among the ranks as they are now: no waiting, nothing is reserved
//
// Threads  The request's loop.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "io/http/server_connection.h"
#include "router/gateway/dispatch_queue.h"
#include "router/gateway/loop_router.h"
#include "router/gateway/request_fields.h"
#include "router/gateway/usage_report.h"
#include "router/routing/reservation.h"
#include "router/routing/testimony.h"

namespace fathom {

class Selection {
 public:
  Selection(LoopRouter& router, const RequestHead& head, Route route, const RequestFields& fields,
            std::string_view request_id);

  // Whether the mode uses prompts, and this request has one.
  bool by_prompt() const { return by_prompt_; }

  // Whether no worker can serve the request yet, but one may soon. Uses the current fleet.
  bool AwaitsWorkers();
  // No worker serves the model now: no tokens are needed, and no choice is possible.
  bool HasNoWorker() const { return fleet_->Serving(fields_.model).empty(); }

  // The worker of the next attempt; null if there is none, and refusal() may have the reason.
  Worker* SelectWithoutPrompt();

  // The same by prompt. Call Prepare() first. Its error is the client's: an invalid
  // x-fathom-routing header.
  Task<Result<void>> Prepare();
  Task<Worker*> SelectByPrompt(TimePoint give_up_at);

  // What would be decided at this moment. Nothing is reserved, and no queue is joined even if a
  // request would.
  Steering::Choice Preview(bool& would_wait);
  // Whether the chosen worker waits for its interview, or is refused, by now. Uses the current
  // fleet.
  bool IsHeld(const Worker& worker);
  // Whether another worker is left if `failed` is not tried again.
  bool AnotherBeside(const Worker& failed);
  // The worker failed: it is not tried again, and the fleet is read again.
  void Exclude(const Worker& worker);
  // The chosen worker no longer works on the request.
  void Release();
  // Ends a wait in the dispatch queue, because the client has left.
  void Cancel();

  // Token ids to send to the worker in place of the prompt's text; empty: send the text.
  std::span<const TokenId> TokensFor(const Worker& worker) const;

  size_t tried() const { return tried_.size(); }
  const FleetSnapshot& fleet() const { return *fleet_; }
  // Keeps the worker that was chosen last.
  const std::shared_ptr<const FleetSnapshot>& snapshot() const { return fleet_; }
  std::string_view session() const { return session_; }
  struct Refusal {
    int status = 0;
    std::string_view code;
    std::string_view what;
  };
  const std::optional<Refusal>& refusal() const { return refusal_; }

  // Of the rank that was chosen last.
  bool names_rank() const { return names_rank_; }  // the request must name the rank
  uint32_t dp_rank() const { return dp_rank_; }
  std::optional<uint32_t> cached_tokens() const { return cached_tokens_; }

  // The progress of the chosen worker's answer: the first byte of its body,
  void OnFirstByte(int status);
  // another piece of a stream,
  void OnPiece();
  // and the usage that the engine reports; at most once, after the first byte.
  void OnUsage(const EngineUsage& usage) { usage_ = usage; }

 private:
  // The next worker of the model, by its place in the fleet's list, whose first replay the index
  // still lacks.
  size_t FindReplay(size_t from) const;
  Task<void> AwaitReplays(TimePoint give_up_at);
  bool FindEligible();
  Roster& FindRoster();
  bool NarrowToSession();
  const Member* MemberOfSession() const;
  Worker* SelectNamed();
  Task<Worker*> AwaitTurn(TimePoint give_up_at);
  Steering::Choice Decide(Steering::Patience patience);
  Steering::Choice DecideAmong(Steering::Patience patience, std::string_view narrowed_by);
  Steering::Choice Explained(const Steering::Choice& choice, std::string_view narrowed_by) const;
  Worker* Book(const Steering::Choice& choice, Duration waited);
  RouteQuestion Question() const;
  PromptSpace Space() const;
  void Testify(const Steering::Choice& choice);
  void EndTestimony();

  LoopRouter& router_;
  GatewayContext& context_;
  Loop& loop_;
  const RequestHead& head_;
  const Route route_;
  const RequestFields& fields_;
  const std::string_view request_id_;
  std::string_view session_;
  std::shared_ptr<const FleetSnapshot> fleet_;
  std::vector<WorkerId> tried_;
  std::optional<Refusal> refusal_;

  const bool by_prompt_;
  bool any_worker_ = false;  // at the last decision by prompt, a worker could serve the request
  Weights weights_;
  std::optional<uint32_t> wanted_rank_;  // named by the client
  PromptTokens prompt_;
  DispatchQueue::Waiter* waiting_ = nullptr;
  bool cancelled_ = false;
  std::optional<Reservation> booked_;
  std::optional<Testimony> testimony_;  // while load is reserved, if KV events are followed
  uint64_t decision_ = 0;               // the number of the decision that it is about
  uint32_t pieces_ = 0;                 // not yet reported to the rank's load

  bool names_rank_ = false;
  uint32_t dp_rank_ = 0;
  std::optional<uint32_t> cached_tokens_;
  std::optional<EngineUsage> usage_;
};

}  // namespace fathom
