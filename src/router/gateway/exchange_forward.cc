// Requests for models that other replicas serve.
//
// Such a request is forwarded once: the other replica gets it as it came, with x-fathom-forwarded,
// and does not forward it again. A client that sends the header itself gives up the forwarding of
// its own request, and nothing else. The client's credentials are passed on: replicas of a group
// have the same keys.
#include <fmt/format.h>

#include <algorithm>

#include "codec/request_target.h"
#include "router/gateway/exchange.h"

namespace fathom {
namespace {

std::string_view Words(PeerFailure failure) {
  switch (failure) {
    case PeerFailure::kNone:
      break;
    case PeerFailure::kUnreachable:
      return "cannot be reached";
    case PeerFailure::kBroken:
      return "closed the connection before it answered";
    case PeerFailure::kTimeout:
      return "did not answer in time";
    case PeerFailure::kRefused:
      return "does not serve it";
    case PeerFailure::kBusy:
      return "is not ready";
  }
  return "failed";
}

}  // namespace

// The other replica has time limits of its own, and retries on its own workers: it answers later
// than a worker does. Its settings are taken to be like these.
TimePoint Exchange::PeerDeadline() const {
  const GatewayOptions& o = context_.options;
  const Duration attempts = o.first_byte_timeout * std::max<uint32_t>(o.retry_attempts, 1);
  constexpr Duration kWayThere = std::chrono::seconds(1);
  return Deadline(o.queue_timeout + o.dispatch_timeout + attempts + kWayThere);
}

bool Exchange::IsOthers() const { return !context_.fleet.slice().Contains(fields_.model); }

Task<void> Exchange::ServeByPeer() {
  constexpr size_t kLongestName = 64;
  const std::string& self = context_.options.replica_id;
  if (const Header* const by = client_.head().headers.Find(HeaderName::kFathomForwarded)) {
    context_.peers.counts().misdirected.fetch_add(1, std::memory_order_relaxed);
    const std::string message = fmt::format(
        "replica '{}' forwarded this request for the model '{}' to replica '{}', which does not "
        "serve it (--models)",
        by->value.substr(0, kLongestName), fields_.model, self);
    auto refusing = Refuse(421, "model_not_served_here", message);
    co_await refusing;
    co_return;
  }
  std::shared_ptr<const PeerRoute> peer = context_.peers.Find(fields_.model, loop_.now());
  if (peer == nullptr) {
    auto refusing = RefuseModel();
    co_await refusing;
    co_return;
  }
  std::shared_ptr<const PeerRoute> other =
      context_.peers.Find(fields_.model, loop_.now(), peer.get());
  auto forwarding = Forward(*peer, other != nullptr);
  bool answered = co_await forwarding;
  if (!answered && !client_left_ && other != nullptr && loop_.now() < give_up_at_ &&
      peer_failure_ != PeerFailure::kTimeout) {
    peer = std::move(other);
    auto forwarding_again = Forward(*peer, false);
    answered = co_await forwarding_again;
  }
  if (client_left_) co_return;
  auto& counts = context_.peers.counts();
  const bool complete = answered && peer_failure_ == PeerFailure::kNone;
  (complete ? counts.forwarded : counts.failed).fetch_add(1, std::memory_order_relaxed);
  if (answered) co_return;
  const bool late = peer_failure_ == PeerFailure::kTimeout;
  const std::string message =
      fmt::format("the model '{}' is served by replica '{}', which {}{}", fields_.model, peer->id,
                  Words(peer_failure_), late ? "" : "; try again shortly");
  auto refusing =
      Refuse(late ? 504 : 503, late ? "replica_timeout" : "replica_unavailable", message);
  co_await refusing;
}

// No replica is known to serve the model.
Task<void> Exchange::RefuseModel() {
  const std::string mute = context_.peers.WithoutUrl(fields_.model);
  const std::string message =
      mute.empty() ? fmt::format(
                         "no worker serves the model '{}': --models of this router does not "
                         "contain it, and no other replica serves it",
                         fields_.model)
                   : fmt::format(
                         "no worker of this router serves the model '{}'; replica '{}' does, but "
                         "has no --replica-url to forward requests to",
                         fields_.model, mute);
  auto refusing = Refuse(404, "model_not_found", message);
  co_await refusing;
}

// False: nothing has been sent to the client, and peer_failure_ has the reason. True: the client
// has an answer, which is complete if peer_failure_ is kNone. `has_other`: another replica can be
// asked, so that an answer of 503 is a failure.
Task<bool> Exchange::Forward(const PeerRoute& peer, bool has_other) {
  connection_ = gateway_.pool_.Take(peer.pool_key);
  bool fresh = connection_ == nullptr;
  bool answered = false;
  if (!fresh) {
    auto asking = AskPeer(peer, has_other);
    answered = co_await asking;
    // The replica may have been closing a kept connection at that moment.
    fresh = !answered && !answer_started_ && peer_failure_ == PeerFailure::kBroken && !client_left_;
  }
  if (fresh) {
    auto connecting = ConnectPeer(peer);
    answered = co_await connecting;
    if (answered) {
      auto asking = AskPeer(peer, has_other);
      answered = co_await asking;
    }
  }
  connection_.reset();
  if (!answered && !client_left_) ReportPeer(peer);
  co_return answered;
}

Task<bool> Exchange::ConnectPeer(const PeerRoute& peer) {
  connection_ = std::make_unique<ClientConnection>(loop_, context_.options.max_head);
  const TimePoint deadline = Deadline(context_.options.connect_timeout);
  auto opening = connection_->Open(peer.endpoint, context_.resolver, deadline);
  const auto opened = co_await opening;
  if (!opened) peer_failure_ = PeerFailure::kUnreachable;
  co_return opened.has_value();
}

Task<bool> Exchange::AskPeer(const PeerRoute& peer, bool has_other) {
  connection_->BeginAnswer();
  answer_started_ = false;
  peer_failure_ = PeerFailure::kBroken;
  BuildForwardedHead(peer);
  std::array<iovec, 2> parts = {
      iovec{const_cast<char*>(request_head_.text().data()), request_head_.size()},
      iovec{const_cast<char*>(body_.data()), body_.size()}};
  const size_t whole = request_head_.size() + body_.size();
  const TimePoint deadline = Deadline(context_.options.idle_timeout);
  const IoResult sent = co_await connection_->socket().WriteUntilInput(parts, deadline);
  if (!sent.ok()) co_return false;
  sent_whole_ = sent.bytes == whole;
  context_.metrics.bytes_from_clients.Add(body_.size());
  Buffer& in = connection_->in();
  const TimePoint answer_deadline = PeerDeadline();
  for (bool complete = false; !complete;) {
    const IoResult read = co_await connection_->socket().Read(in.room(), answer_deadline);
    if (read.status == IoStatus::kTimeout) peer_failure_ = PeerFailure::kTimeout;
    if (!read.ok()) co_return false;
    answer_started_ = true;
    in.Commit(read.bytes);
    const auto parsed = connection_->ParseHead(false);
    if (!parsed) co_return false;
    complete = *parsed;
  }
  const int status = connection_->head().status;
  if (status == 421) peer_failure_ = PeerFailure::kRefused;
  if (status == 503 && has_other) peer_failure_ = PeerFailure::kBusy;
  if (status == 421 || (status == 503 && has_other)) co_return false;
  auto relaying = RelayPeer(peer);
  const bool relayed = co_await relaying;
  co_return relayed;
}

Task<bool> Exchange::RelayPeer(const PeerRoute& peer) {
  const int status = connection_->head().status;
  const AnswerRelay::Patience patience{context_.options.first_byte_timeout,
                                       context_.options.idle_timeout, give_up_at_};
  // The replica has checked the answer for early ends, and has read its usage.
  const AnswerRelay::Watch watch{form_, 0, context_.held_answers};
  AnswerRelay relay(client_, *connection_, context_.metrics, selection_, patience,
                    AnswerRelay::Kind::kOther, UsageWish{}, watch);
  relay_ = &relay;
  BuildForwardedAnswerHeaders(peer);
  auto running = relay.Run(request_head_.text());
  const AnswerRelay::End end = co_await running;
  relay_ = nullptr;
  bytes_out_ = relay.bytes();
  context_.metrics.bytes_to_clients.Add(bytes_out_);
  if (end == AnswerRelay::End::kClientLeft || client_left_) {
    client_left_ = true;
    co_return false;
  }
  if (end != AnswerRelay::End::kComplete && !relay.sent_anything()) {
    if (relay.failure() == IoStatus::kTimeout) peer_failure_ = PeerFailure::kTimeout;
    co_return false;
  }
  Finish(status);
  if (end != AnswerRelay::End::kComplete) {
    peer_failure_ = PeerFailure::kBroken;
    context_.metrics.broken_answers.Add();
    ReportPeer(peer);
    auto breaking =
        relay.BreakOff(502, "replica_failed", "the replica failed while it was answering");
    co_await breaking;
    co_return true;
  }
  peer_failure_ = PeerFailure::kNone;
  if (sent_whole_ && connection_->Reusable()) {
    gateway_.pool_.Put(peer.pool_key, std::move(connection_));
  }
  co_return true;
}

void Exchange::BuildForwardedHead(const PeerRoute& peer) {
  const RequestHead& head = client_.head();
  const RequestTarget target = RequestTarget::Of(head.target);
  request_head_.Clear();
  request_head_.Add(head.method, " ", peer.endpoint.url.path, target.path, target.query,
                    " HTTP/1.1\r\nhost: ", peer.host_header, "\r\n");
  for (const Header& header : head.headers.all()) {
    switch (header.id) {
      case HeaderName::kHost:
      case HeaderName::kContentLength:
      case HeaderName::kExpect:
      case HeaderName::kRequestId:
      case HeaderName::kFathomForwarded:
        continue;
      default:
        if (IsHopByHop(header, head.headers)) continue;
    }
    request_head_.Add(header.name, ": ", header.value, "\r\n");
  }
  request_head_.Add("x-fathom-forwarded: ", context_.options.replica_id,
                    "\r\nx-request-id: ", request_id_,
                    "\r\ncontent-length: ", Decimal(body_.size()).text(), "\r\n\r\n");
}

// Which worker has answered is known to the other replica.
void Exchange::BuildForwardedAnswerHeaders(const PeerRoute& peer) {
  request_head_.Clear();
  request_head_.Add("x-request-id: ", request_id_, "\r\n");
  if (!context_.options.routing_headers) return;
  request_head_.Add("x-fathom-replica: ", peer.id, "\r\n");
  for (const Header& header : connection_->head().headers.all()) {
    switch (header.id) {
      case HeaderName::kFathomWorker:
      case HeaderName::kFathomDpRank:
      case HeaderName::kFathomCachedTokens:
        request_head_.Add(header.name, ": ", header.value, "\r\n");
        break;
      default:
        break;
    }
  }
}

void Exchange::ReportPeer(const PeerRoute& peer) {
  PeerDirectory::Failed(peer, loop_.now());
  const auto before = context_.peer_lines.Next(peer.pool_key.value(), loop_.now());
  if (!before) return;
  context_.log.Warn("A request could not be forwarded to another replica",
                    {{"request_id", request_id_},
                     {"replica", peer.id},
                     {"url", peer.endpoint.url.ToString()},
                     {"cause", Words(peer_failure_)},
                     {"similar_before", *before}});
}

}  // namespace fathom
