#include "events/bound_stream.h"

#include <algorithm>

#include "events/event_source.h"
#include "events/msgpack_dialect.h"

namespace fathom {

Result<std::shared_ptr<BoundStream>> BoundStream::Open(IntakeContext& context) {
  TRY(auto socket,
      ZmqSocket::Open(context.zmq, context.loop, ZmqType::kSub, context.SocketOptions()));
  socket->Subscribe("");
  auto bound = socket->Bind(context.options.bind);
  if (!bound) return std::unexpected(std::move(bound).error().In("kv-events-bind"));
  context.log.Info("Waiting for engines that publish KV events here", {{"endpoint", *bound}});
  return std::shared_ptr<BoundStream>(new BoundStream(context, std::move(socket)));
}

void BoundStream::SetOwners(std::vector<StreamOwner> owners) {
  owners_ = std::move(owners);
  std::erase_if(ranks_, [this](const auto& entry) {
    return entry.second.get() != repairing_ &&
           std::ranges::none_of(owners_, [&](const StreamOwner& owner) {
             return owner.worker.get() == &entry.second->worker();
           });
  });
}

const StreamOwner* BoundStream::OwnerOf(std::string_view topic) const {
  for (const StreamOwner& owner : owners_) {
    if (owner.worker->spec().kv_events_topic == topic) return &owner;
  }
  for (const StreamOwner& owner : owners_) {
    const Url& url = owner.endpoint->url;
    if (topic.find(url.host + ':' + std::to_string(url.port)) != topic.npos) return &owner;
  }
  return nullptr;
}

FollowedRank* BoundStream::RankOf(const StreamOwner& owner, const NumberedPayload& batch) {
  const auto decoded = DecodeEventBatch(batch.payload);
  const uint32_t number = decoded ? decoded->rank.value_or(0) : 0;
  if (number >= kMaxEventRanks) return nullptr;
  auto& rank = ranks_[{owner.worker->id(), number}];
  if (!rank) {
    std::string replay;
    if (const auto& base = owner.worker->spec().kv_events_replay) {
      replay = WithPortOffset(*base, number).value_or("");
    }
    rank = std::make_unique<FollowedRank>(context_, owner, number, context_.options.bind, replay);
    rank->status().connected.store(true, std::memory_order_relaxed);
    rank->Connected();
  }
  return rank.get();
}

Task<void> BoundStream::Handle(const ZmqMessage& message) {
  const auto batch = ReadNumbered(message);
  const StreamOwner* const owner = message.size() >= 3 ? OwnerOf(message[0]) : nullptr;
  FollowedRank* const rank = batch && owner != nullptr ? RankOf(*owner, *batch) : nullptr;
  if (rank == nullptr) {
    if (strays_++ == 0) {
      context_.log.Warn("KV events from an engine that is no worker here are ignored",
                        {{"endpoint", context_.options.bind},
                         {"fix",
                          "give the worker's entry the kv_events_topic that its engine "
                          "publishes under"}});
    }
    co_return;
  }
  repairing_ = rank;
  if (rank->repairing()) {
    auto joining = rank->Repair();
    co_await joining;
  }
  if (!stopped_) rank->Message(message);
  if (!stopped_ && rank->repairing()) {
    auto repairing = rank->Repair();
    co_await repairing;
  }
  repairing_ = nullptr;
}

Task<void> BoundStream::Run() {
  ZmqMessage message;
  while (!stopped_) {
    const IoStatus status = co_await socket_->Receive(message, kNever);
    if (status == IoStatus::kError) co_return;
    if (status != IoStatus::kOk) continue;
    auto handling = Handle(message);
    co_await handling;
  }
}

void BoundStream::Stop() {
  stopped_ = true;
  if (repairing_ != nullptr) repairing_->Stop();
  socket_->Cancel();
}

void BoundStream::Tick() {
  for (const auto& [key, rank] : ranks_) rank->Tick();
}

}  // namespace fathom
