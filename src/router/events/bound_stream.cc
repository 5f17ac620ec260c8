#include "router/events/bound_stream.h"

#include <algorithm>
#include <utility>

#include "router/events/event_source.h"
#include "router/events/msgpack_dialect.h"

namespace fathom {
namespace {

constexpr RepeatRule kRefusalLines{.pause = std::chrono::seconds(10)};
constexpr Duration kWhileBusy = std::chrono::milliseconds(5);

}  // namespace

Result<std::shared_ptr<BoundStream>> BoundStream::Open(IntakeContext& context) {
  const IntakeOptions& options = context.options;
  auto listener = ZmtpListener::Bind(context.loop, context.budget, options.bind,
                                     {.allow = options.bind_allow,
                                      .key = options.bind_key,
                                      .limits = IntakeContext::kStreamLimits},
                                     context.log);
  if (!listener) return std::unexpected(std::move(listener).error().In("kv-events-bind"));
  const Address& bound = (*listener)->address();
  context.log.Info("Waiting for engines that publish KV events here",
                   {{"endpoint", "tcp://" + bound.ToString()},
                    {"allow", !options.bind_allow.empty()},
                    {"key", !options.bind_key.empty()}});
  if (!bound.loopback() && options.bind_allow.empty() && options.bind_key.empty()) {
    context.log.Warn(
        "Anyone who reaches this port can publish KV events of any worker: set "
        "--kv-events-bind-allow or --kv-events-bind-key",
        {{"endpoint", "tcp://" + bound.ToString()},
         {"docs", context.log.docs().To("security.md")}});
  }
  return std::shared_ptr<BoundStream>(new BoundStream(context, *std::move(listener)));
}

void BoundStream::SetOwners(std::vector<StreamOwner> owners) {
  owners_ = std::move(owners);
  claims_.clear();
  for (const StreamOwner& owner : owners_) {
    const Url& url = owner.endpoint->url;
    claims_.push_back({owner.worker->spec().kv_events_topic, url.host, url.port});
  }
  std::erase_if(ranks_, [this](const auto& entry) {
    const FollowedRank& rank = entry.second->rank;
    const bool gone = std::ranges::none_of(
        owners_, [&](const StreamOwner& owner) { return owner.worker.get() == &rank.worker(); });
    if (gone) entry.second->rank.Stop();
    return gone;
  });
}

const StreamOwner* BoundStream::OwnerOf(std::string_view topic) const {
  const auto owner = OwnerOfTopic(topic, claims_);
  return owner ? &owners_[*owner] : nullptr;
}

std::shared_ptr<BoundStream::Served> BoundStream::Find(const StreamOwner& owner, uint32_t number) {
  auto& served = ranks_[{owner.worker->id(), number}];
  if (!served) {
    std::string replay;
    if (const auto& base = owner.worker->spec().kv_events_replay) {
      replay = WithPortOffset(*base, number).value_or("");
    }
    served = std::make_shared<Served>(context_, owner, number, context_.options.bind, replay);
    served->rank.status().connected.store(true, std::memory_order_relaxed);
    served->rank.Connected();
  }
  return served;
}

// 0 if the batch has none or cannot be read; nullopt if there is no such rank.
Task<std::optional<uint32_t>> BoundStream::RankIn(std::string_view payload) {
  EventBatchReader reader(payload);
  LoopShare share(context_.loop);
  auto checked = reader.Check(LargeBatch::kLarge);
  while (checked && !*checked) {
    if (share.Spent(0)) co_await Yield(context_.loop);
    checked = reader.Check(LargeBatch::kLarge);
  }
  const uint32_t rank = checked ? reader.head().rank.value_or(0) : 0;
  if (rank >= kMaxEventRanks) co_return std::nullopt;
  co_return rank;
}

Task<void> BoundStream::Handle(const ZmqMessage& message) {
  const auto batch = ReadNumbered(message);
  const StreamOwner* const found = batch && message.size() >= 3 ? OwnerOf(message[0]) : nullptr;
  if (found == nullptr) {
    SayStray();
    co_return;
  }
  const StreamOwner owner = *found;
  auto reading = RankIn(batch->payload);
  const std::optional<uint32_t> number = co_await reading;
  // The worker may have left meanwhile.
  const bool stays = std::ranges::any_of(
      owners_, [&](const StreamOwner& other) { return other.worker == owner.worker; });
  if (stopped_ || !stays) co_return;
  if (!number) {
    SayStray();
    co_return;
  }
  const std::shared_ptr<Served> served = Find(owner, *number);
  while (served->busy && !stopped_) co_await context_.loop.Sleep(kWhileBusy);
  if (stopped_) co_return;
  served->busy = true;
  auto feeding = Feed(*served, message);
  co_await feeding;
  served->busy = false;
}

Task<void> BoundStream::Feed(Served& served, const ZmqMessage& message) {
  FollowedRank& rank = served.rank;
  if (rank.exporting()) {
    auto waiting = rank.AwaitExport();
    co_await waiting;
  }
  auto feeding = rank.Feed(message);
  co_await feeding;
}

void BoundStream::SayStray() {
  const auto before = stray_lines_.Next(context_.loop.now());
  if (!before) return;
  context_.log.Warn("Ignoring KV events that match no worker",
                    {{"endpoint", context_.options.bind},
                     {"fix",
                      "set kv_events_topic in the worker's entry to the topic that its "
                      "engine publishes under"},
                     {"similar_before", *before}});
}

void BoundStream::Refused(ZmtpRefusal why, const Address& from, ZmtpFault fault) {
  const auto reason = static_cast<size_t>(why);
  context_.board.refused_publishers[reason].Add(1);
  const auto before = refusal_lines_.Next(context_.loop.now(), kRefusalLines);
  if (!before) return;
  context_.log.Warn("A publisher of KV events was refused",
                    {{"endpoint", context_.options.bind},
                     {"from", from.ToString()},
                     {"reason", FeedBoard::kRefusals[reason]},
                     {"detail", fault == ZmtpFault::kNone ? "" : Describe(fault)},
                     {"similar_before", *before}});
}

Task<void> BoundStream::Serve(ZmtpConnection& peer) {
  while (!stopped_) {
    auto waiting = peer.Receive(kNever);
    const ZmtpNews news = co_await waiting;
    if (news != ZmtpNews::kMessage) co_return;
    auto handling = Handle(peer.message());
    co_await handling;
  }
}

Task<void> BoundStream::Run() {
  auto running = listener_->Run(
      [this](ZmtpConnection& peer) { return Serve(peer); },
      [this](ZmtpRefusal why, const Address& from, ZmtpFault fault) { Refused(why, from, fault); });
  co_await running;
}

void BoundStream::Stop() {
  stopped_ = true;
  for (const auto& [key, served] : ranks_) served->rank.Stop();
  listener_->Stop();
}

std::shared_ptr<TellableRank> BoundStream::TellableOf(const RankLabel& rank) {
  for (const auto& [key, served] : ranks_) {
    if (served->rank.label() == rank) return {served, &served->rank};
  }
  return nullptr;
}

void BoundStream::ListTellable(std::vector<RankLabel>& ranks) {
  for (const auto& [key, served] : ranks_) {
    if (served->rank.tellable()) ranks.push_back(served->rank.label());
  }
}

void BoundStream::Tick() {
  for (const auto& [key, served] : ranks_) served->rank.Tick();
}

}  // namespace fathom
