// Which worker, and which of its ranks, gets this request next?
//
// In the modes that look at the prompt: tokens first (bounded by --tokenize-timeout), then a choice
// with what is known at that moment, or a place in the line until some rank has room; the chosen
// rank's load is booked until Release(). In the other modes a worker is picked by turn, chance or
// load, and nothing is booked.
//
// Threads  The request's loop.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gateway/answer_relay.h"
#include "gateway/dispatch_queue.h"
#include "gateway/loop_router.h"
#include "gateway/request_fields.h"
#include "gateway/request_witness.h"
#include "http/server_connection.h"
#include "routing/reservation.h"

namespace fathom {

class Selection final : public AnswerWatcher {
 public:
  Selection(LoopRouter& router, const RequestHead& head, Route route, const RequestFields& fields,
            std::string_view request_id);

  // Whether the mode looks at prompts, and this request has one.
  bool by_prompt() const { return by_prompt_; }

  // Whether nobody can serve the request yet, but soon somebody may. Looks at the fleet anew.
  bool AwaitsWorkers();

  // The next worker to try; null if there is none, then refusal() may know why.
  Worker* Pick();

  // The same by prompt. First, what the request asks for must be read; an error is the client's: a
  // wish that makes no sense.
  Task<Result<void>> Prepare();
  Task<Worker*> ChooseByPrompt(TimePoint give_up_at);

  // What would be chosen now; nothing is booked, and no line is joined, though a request might.
  Steering::Choice Try(bool& would_wait);
  // Whether there is another one, if `failed` is not tried again.
  bool AnotherBeside(const Worker& failed);
  // It failed: it is not tried again, and the fleet is looked at anew.
  void Exclude(const Worker& worker);
  // The chosen worker has nothing to do with the request any more.
  void Release();
  // Ends a wait in the line. The request is not wanted any more.
  void Cancel();

  // What to send to it in place of the prompt's text; empty: the text.
  std::span<const TokenId> TokensFor(const Worker& worker) const;

  size_t tried() const { return tried_.size(); }
  const FleetSnapshot& fleet() const { return *fleet_; }
  std::string_view session() const { return session_; }
  struct Refusal {
    int status = 0;
    std::string_view code;
    std::string_view what;
  };
  const std::optional<Refusal>& refusal() const { return refusal_; }

  // About the rank that was chosen last.
  bool names_rank() const { return names_rank_; }  // the worker has to be told
  uint32_t dp_rank() const { return dp_rank_; }
  std::optional<uint32_t> cached_tokens() const { return cached_tokens_; }

  void OnFirstByte(int status) override;
  void OnPiece() override;
  void OnUsage(const EngineUsage& usage) override { usage_ = usage; }

 private:
  bool FindEligible();
  bool NarrowToSession();
  Worker* PickDirect();
  Task<Worker*> AwaitTurn(TimePoint give_up_at);
  Steering::Choice Decide(Steering::Patience patience);
  Steering::Choice DecideAmong(Steering::Patience patience, std::string_view narrowed_by);
  void Explain(Decision& decision) const;
  Worker* Book(const Steering::Choice& choice, Duration waited);
  RouteQuestion Question() const;
  PromptSpace Space() const;
  void Testify(const Steering::Choice& choice);

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
  Weights weights_;
  std::optional<uint32_t> wanted_rank_;  // by the client
  PromptTokens prompt_;
  DispatchQueue::Waiter* waiting_ = nullptr;
  bool cancelled_ = false;
  std::optional<Reservation> booked_;
  std::optional<RequestWitness> witness_;  // while it is booked, where events are followed
  uint32_t pieces_ = 0;                    // since the load last heard of them

  bool names_rank_ = false;
  uint32_t dp_rank_ = 0;
  std::optional<uint32_t> cached_tokens_;
  std::optional<EngineUsage> usage_;
};

// Every rank of the workers that may get the request, into `places`. With `wanted`, only ranks of
// that number, where a worker has it.
void ListPlaces(std::span<const Member* const> eligible, std::optional<uint32_t> wanted,
                std::vector<Place>& places);

}  // namespace fathom
