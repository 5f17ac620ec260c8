#include "events/zmq_stream.h"

namespace fathom {

Result<std::shared_ptr<ZmqStream>> ZmqStream::Open(IntakeContext& context, const StreamOwner& owner,
                                                   const EventSource& source) {
  TRY(auto socket,
      ZmqSocket::Open(context.zmq, context.loop, ZmqType::kSub, context.SocketOptions()));
  socket->Subscribe(source.topic);
  TRY_VOID(socket->Connect(source.endpoint));
  return std::shared_ptr<ZmqStream>(new ZmqStream(context, owner, source, std::move(socket)));
}

ZmqStream::ZmqStream(IntakeContext& context, const StreamOwner& owner, const EventSource& source,
                     std::unique_ptr<ZmqSocket> socket)
    : socket_(std::move(socket)),
      rank_(context, owner, source.rank, source.endpoint, source.replay) {
  socket_->OnPeer([this](ZmqPeerEvent event) {
    up_ = event == ZmqPeerEvent::kConnected;
    rank_.status().connected.store(up_, std::memory_order_relaxed);
    socket_->Cancel();  // a reconnection is looked into before the next message comes
  });
}

void ZmqStream::Stop() {
  stopped_ = true;
  rank_.Stop();
  socket_->Cancel();
}

// Looks into new connections and repairs what must be, so that a live batch can be fed. False: it
// was stopped meanwhile.
Task<bool> ZmqStream::Settle() {
  while (!stopped_) {
    if (socket_->connects() != connects_seen_) {
      connects_seen_ = socket_->connects();
      rank_.Connected();
    }
    if (!rank_.repairing()) co_return true;
    auto repairing = rank_.Repair();
    co_await repairing;
  }
  co_return false;
}

Task<void> ZmqStream::Run() {
  ZmqMessage message;
  while (!stopped_) {
    const IoStatus status = co_await socket_->Receive(message, kNever);
    if (status == IoStatus::kError) co_return;
    auto settling = Settle();
    const bool settled = co_await settling;
    if (!settled) co_return;
    if (status != IoStatus::kOk) continue;
    rank_.Message(message);
    // A gap is repaired now, not when the next message comes.
    auto repairing = Settle();
    const bool repaired = co_await repairing;
    if (!repaired) co_return;
  }
}

}  // namespace fathom
