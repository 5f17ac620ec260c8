// Which worker, and which of its ranks, gets this request next?
//
// In the modes that use the prompt: tokens first (bounded by --tokenize-timeout), then, just after
// a worker has joined, its replay of KV events (bounded by --kv-events-replay-wait), then a
// decision with the state at that moment, or a place in the dispatch queue until a rank has room.
// The chosen rank's load is reserved until Release(). In the other modes a worker is selected by
// turn, at random or by load, and nothing is reserved.
//
// A request about a response that an engine keeps goes to the worker that has it, and to no other.
//
//   Select...  for this request: waits if it must, and reserves the load
//   Decide     among the ranks as they are now: no waiting, nothing is reserved
//
// Threads  The request's loop.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/http/server_connection.h"
#include "router/gateway/choice_outcome.h"
#include "router/gateway/dispatch_queue.h"
#include "router/gateway/hint_of_request.h"
#include "router/gateway/loop_router.h"
#include "router/gateway/request_fields.h"
#include "router/routing/reservation.h"

namespace fathom {

class Selection {
 public:
  Selection(LoopRouter& router, const RequestHead& head, Route route, const RequestFields& fields,
            std::string_view request_id);

  // Whether the mode uses prompts, and this request has one.
  bool by_prompt() const { return by_prompt_; }

  // Whether the request is about a response that an engine keeps: it continues one, or names it in
  // its path. FindHolder() must then come first.
  bool names_response() const { return !response_.empty(); }
  // Finds the worker that has it, by asking if it is not remembered. False: none has it, and
  // refusal() says so.
  Task<bool> FindHolder();
  // Whether only one worker can serve the request.
  bool pinned() const { return holder_.has_value(); }
  // Whether its health checks succeed, too.
  bool IsReady(const Worker& worker) const;

  // Whether no worker can serve the request yet, but one may soon. Uses the current fleet.
  bool AwaitsWorkers();
  // No worker serves the model now: no tokens are needed, and no choice is possible.
  bool HasNoWorker();

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
  // The worker answers: later requests of the session, as far as it is only hinted at, may follow.
  void RememberHint(const Worker& worker, int status);
  struct Refusal {
    int status = 0;
    std::string_view code;
    std::string_view what;
  };
  const std::optional<Refusal>& refusal() const { return refusal_; }
  // If the worker that has the response is gone.
  Refusal Lost() const;

  // Of the rank that was chosen last.
  bool names_rank() const { return names_rank_; }  // the request must name the rank
  uint32_t dp_rank() const { return dp_rank_; }
  std::optional<uint32_t> cached_tokens() const { return cached_tokens_; }

  // The progress of the chosen worker's answer: its head,
  void OnHead(const Worker& worker, int status);
  // the id of the response that it makes,
  void OnResponse(const std::string& id);
  // the first byte of its body,
  void OnFirstByte(int status);
  // another piece of a stream,
  void OnPiece();
  // and the usage that the engine reports; at most once, after the first byte.
  void OnUsage(const EngineUsage& usage);

 private:
  // The next worker of the model, by its place in the fleet's list, whose first replay the index
  // still lacks.
  size_t FindReplay(size_t from) const;
  Task<void> AwaitReplays(TimePoint give_up_at);
  bool FindEligible();
  Roster& FindRoster();
  const Member* Holder();
  std::string_view Line() const { return line_.empty() ? fields_.model : line_; }
  bool NarrowToSession();
  void FindHinted();
  size_t ChooseByLoad();
  const Member* MemberOfSession() const;
  Worker* SelectNamed();
  Task<Worker*> AwaitTurn(TimePoint give_up_at);
  Steering::Choice Decide(Steering::Patience patience);
  Steering::Choice DecideAmong(Steering::Patience patience, std::string_view narrowed_by);
  Steering::Choice Explained(const Steering::Choice& choice, std::string_view narrowed_by) const;
  Worker* Book(const Steering::Choice& choice, Duration waited);
  RouteQuestion Question() const;
  PromptSpace Space() const;

  LoopRouter& router_;
  GatewayContext& context_;
  Loop& loop_;
  const RequestHead& head_;
  const Route route_;
  const RequestFields& fields_;
  const std::string_view request_id_;
  std::string_view session_;
  std::optional<HintOfRequest> hint_;
  uint64_t hint_key_ = 0;
  std::optional<SessionHints::Found> hinted_;  // at the last choice
  PromptMark sent_mark_;                       // the deepest one of the prompt that was sent
  uint64_t sent_life_ = 0;                     // of the engine that it was sent to
  std::shared_ptr<const FleetSnapshot> fleet_;
  std::vector<WorkerId> tried_;
  std::optional<Refusal> refusal_;

  std::string response_;            // the id that the request is about; or empty
  std::optional<WorkerId> holder_;  // that has it
  RouteQuestion::Continued continued_;
  std::string line_;    // of the holder, in the dispatch queue; empty: the model's
  WorkerId answering_;  // since OnHead()
  std::string made_;    // the id of the response that is being made; or empty

  const bool by_prompt_;
  bool any_worker_ = false;  // at the last decision by prompt, a worker could serve the request
  Weights weights_;
  std::optional<uint32_t> wanted_rank_;  // named by the client
  PromptTokens prompt_;
  DispatchQueue::Waiter* waiting_ = nullptr;
  bool cancelled_ = false;
  std::optional<Reservation> booked_;
  ChoiceOutcome outcome_;  // while load is reserved
  uint32_t pieces_ = 0;    // not yet reported to the rank's load

  bool names_rank_ = false;
  uint32_t dp_rank_ = 0;
  std::optional<uint32_t> cached_tokens_;
};

}  // namespace fathom
