#include "router/events/zmq_stream.h"

namespace fathom {

Result<std::shared_ptr<ZmqStream>> ZmqStream::Open(IntakeContext& context, const StreamOwner& owner,
                                                   const EventSource& source) {
  TRY(auto client,
      ZmtpClient::Create(context.loop, context.resolver, context.budget, source.endpoint,
                         {.topic = source.topic, .limits = IntakeContext::kStreamLimits}));
  return std::shared_ptr<ZmqStream>(new ZmqStream(context, owner, source, std::move(client)));
}

void ZmqStream::Stop() {
  stopped_ = true;
  rank_.Stop();
  client_->Stop();
}

std::shared_ptr<TellableRank> ZmqStream::TellableOf(const RankLabel& rank) {
  if (rank_.label() != rank) return nullptr;
  return {shared_from_this(), &rank_};
}

void ZmqStream::ListTellable(std::vector<RankLabel>& ranks) {
  if (rank_.tellable()) ranks.push_back(rank_.label());
}

Task<void> ZmqStream::Run() {
  while (!stopped_) {
    auto waiting = client_->Next(kNever);
    const ZmtpNews news = co_await waiting;
    if (stopped_) co_return;
    auto taking = Take(news);
    co_await taking;
  }
}

Task<void> ZmqStream::Take(ZmtpNews news) {
  if (rank_.exporting()) {
    auto waiting = rank_.AwaitExport();
    co_await waiting;
    if (stopped_) co_return;
  }
  const bool was =
      rank_.status().connected.exchange(client_->connected(), std::memory_order_relaxed);
  if (news == ZmtpNews::kConnected) rank_.Connected();
  if (news == ZmtpNews::kDisconnected) rank_.Cut(client_->fault());
  if (news == ZmtpNews::kDisconnected && was && client_->fault() == ZmtpFault::kNone) rank_.Lost();
  if (news == ZmtpNews::kMessage) {
    auto feeding = rank_.Feed(client_->message());
    co_await feeding;
  } else if (rank_.repairing()) {
    auto repairing = rank_.Repair();
    co_await repairing;
  }
}

}  // namespace fathom
