// The life of one request: admission, selection of a worker, relay of its answer, and the handling
// of failures in each of them.
//
// Retries       Until the first byte of an answer's body the client has received nothing, so the
//               request can go to another worker: after a refused or broken connection, silence, a
//               5xx, or a 200 that the engine ended early. Later failures are reported to the
//               client.
// Forwarding    A request for a model that this router does not follow goes once to another
//               replica.
// Cancellation  A client that leaves (also by a half-close) closes the worker's connection at once.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/text_builder.h"
#include "io/http/client_connection.h"
#include "router/gateway/answer_relay.h"
#include "router/gateway/gateway.h"
#include "router/gateway/pass_routes.h"
#include "router/gateway/request_fields.h"
#include "router/gateway/selection.h"
#include "router/gateway/usage_question.h"

namespace fathom {

// Why another replica has not answered.
enum class PeerFailure : uint8_t { kNone, kUnreachable, kBroken, kTimeout, kRefused, kBusy };

class Exchange final : private HangupWatcher {
 public:
  Exchange(Gateway& gateway, ServerConnection& client, const PassedRoute& route,
           const RequestFields& fields, std::string_view body);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  Task<void> Run();

  // Stops waiting for a worker whose listener has been closed, and which has been silent, for
  // longer than the grace period.
  void GiveUpIfSilent();
  Exchange* next() const { return next_; }

 private:
  struct Failure {
    RetryReason reason;
    int status;  // the client's status if no other worker can answer
    std::string_view code;
    std::string_view what;
    bool blames_worker = true;
  };
  // A worker's own error, not read beyond its head, until it is certain that another worker is
  // asked in its place.
  struct SpareAnswer {
    std::unique_ptr<ClientConnection> connection;
    Worker* worker;
    std::shared_ptr<const FleetSnapshot> fleet;  // keeps the worker
  };
  // kHeld: the worker was not asked, because another process may be at its address by now.
  enum class Outcome : uint8_t { kOk, kFailed, kHeld, kClientLeft };

  void OnHangup() override;

  Task<bool> Enter();
  Task<bool> AwaitFleet();
  Task<void> Serve();
  Task<void> Refuse(int status, std::string_view code, std::string_view message);
  Task<void> AnswerFailure();
  Task<void> PassOnSpare();

  bool MayTryAgain(const Worker& failed);

  Task<Outcome> Attempt(Worker& worker);
  Task<Outcome> Connect(Worker& worker);
  Task<Outcome> Ask(Worker& worker);
  Task<Outcome> ConnectAndAsk(Worker& worker);
  bool MustReconsider(const Worker& worker);
  Task<Outcome> Relay(Worker& worker);
  bool WantsAnotherWorker(Worker& worker);
  Outcome FailWith(const Failure& failure);
  Outcome FailWith(IoStatus status);
  void BlameWorker(Worker& worker);
  void DoubtWorker();
  Task<void> BreakOff(Worker& worker, AnswerRelay& relay, AnswerRelay::End end);
  void ReportBrokenAnswer(Worker& worker, std::string_view reason);

  // In exchange_forward.cc: requests for models that other replicas serve.
  bool IsOthers() const;
  Task<void> ServeByPeer();
  Task<void> RefuseModel();
  Task<bool> Forward(const PeerRoute& peer, bool has_other);
  Task<bool> ConnectPeer(const PeerRoute& peer);
  Task<bool> AskPeer(const PeerRoute& peer, bool has_other);
  Task<bool> RelayPeer(const PeerRoute& peer);
  void BuildForwardedHead(const PeerRoute& peer);
  void BuildForwardedAnswerHeaders(const PeerRoute& peer);
  void ReportPeer(const PeerRoute& peer);

  std::string_view BodyFor(const Worker& worker);
  void BuildRequestHead(const Worker& worker, size_t body_bytes);
  void BuildAnswerHeaders(const Worker& worker);
  void Finish(int status);
  TimePoint Deadline(Duration wait) const;
  TimePoint PeerDeadline() const;

  Gateway& gateway_;
  GatewayContext& context_;
  Loop& loop_;
  ServerConnection& client_;
  const Route route_;
  const AnswerForm form_;
  const RequestFields& fields_;
  const std::string_view body_;
  std::string token_body_;  // the same with token ids in place of the prompt
  const TimePoint give_up_at_;

  std::array<char, 32> made_id_;
  const std::string_view request_id_;
  Selection selection_;
  UsageQuestion usage_;
  std::optional<Failure> failure_;
  bool retry_granted_ = false;  // for failure_; connection_ then has the worker's answer
  std::optional<SpareAnswer> spare_;

  std::unique_ptr<ClientConnection> connection_;
  Worker* worker_ = nullptr;      // the worker that is being asked
  AnswerRelay* relay_ = nullptr;  // while it runs
  Admission::Wait* waiting_ = nullptr;
  TimePoint asked_at_;
  TextBuilder request_head_;
  bool sent_whole_ = false;      // the worker has received the complete request
  bool answer_started_ = false;  // the worker has sent a byte
  uint64_t bytes_out_ = 0;
  bool client_left_ = false;
  bool given_up_ = false;                            // by GiveUpIfSilent()
  uint8_t held_ = 0;                                 // attempts that ended so
  PeerFailure peer_failure_ = PeerFailure::kBroken;  // the last

  Exchange* next_ = nullptr;
  Exchange** link_ = nullptr;  // the pointer to this object in the gateway's list
};

}  // namespace fathom
