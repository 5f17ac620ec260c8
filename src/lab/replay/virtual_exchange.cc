#include "lab/replay/virtual_exchange.h"

#include <fmt/format.h>

#include <numeric>
#include <optional>

#include "router/replicas/load_exchange.h"
#include "router/replicas/prompt_exchange.h"
#include "router/replicas/replica_group.h"

namespace fathom {
namespace {

std::vector<std::string> NamesOf(size_t replicas) {
  std::vector<std::string> names;
  for (size_t i = 0; i < replicas; ++i) names.push_back(fmt::format("replica-{}", i));
  return names;
}

ReplicaGroupOptions GroupOf(std::string name, Random& random) {
  return {.self = {.group = "replay", .id = std::move(name), .incarnation = random.Next()},
          .seed = random.Next()};
}

}  // namespace

// Without a key: who seals a message has no effect on what it says.
struct VirtualExchange::Member {
  Member(const VirtualExchangeOptions& options, std::string name, Random& random, Carrier& carrier,
         VirtualRouter& router, const TimePoint& now)
      : group(GroupOf(std::move(name), random), nullptr, carrier,
              [] { return ReplicaPresence{}; }) {
    if (options.loads) group.Invite(loads.emplace(router.fleet(), router.world().speed, group));
    if (options.prompts) group.Invite(prompts.emplace(router.world().sent, group));
    carrier.Start([this, &now](std::string_view bytes) {
      group.Received(bytes, now);
      heard = true;
    });
  }

  ReplicaGroup group;
  std::optional<LoadExchange> loads;
  std::optional<PromptExchange> prompts;
  bool heard = false;
};

VirtualExchange::VirtualExchange(const VirtualExchangeOptions& options, uint64_t seed,
                                 std::span<VirtualRouter* const> routers)
    : network_(options.network, NamesOf(routers.size()), seed) {
  Random random(seed);
  for (size_t i = 0; i < routers.size(); ++i) {
    members_.push_back(std::make_unique<Member>(options, NamesOf(routers.size())[i], random,
                                                network_.carrier(i), *routers[i], now_));
    // Each begins when it does.
    const auto phase = random.Below(static_cast<uint64_t>(ReplicaGroup::kTick.count()));
    ticks_.Push(TimePoint(Duration(static_cast<int64_t>(phase))), i);
  }
}

VirtualExchange::~VirtualExchange() = default;

TimePoint VirtualExchange::next() const { return std::min(network_.next(), ticks_.next()); }

void VirtualExchange::Advance(TimePoint now) {
  now_ = now;
  network_.Deliver(now);
  while (const auto member = ticks_.Pop(now)) {
    members_[*member]->group.Tick(now);
    ticks_.Push(now + ReplicaGroup::kTick, *member);
  }
  // Those without a delay.
  network_.Deliver(now);
}

bool VirtualExchange::TakeHeard(size_t replica) {
  return std::exchange(members_[replica]->heard, false);
}

VirtualExchange::Traffic VirtualExchange::traffic() const {
  Traffic traffic;
  for (const auto& member : members_) {
    const ReplicaGroupCounts& counts = member->group.counts();
    traffic.messages += counts.sent;
    traffic.bytes += counts.sent_bytes;
    traffic.received += counts.received;
    traffic.dropped =
        std::accumulate(counts.dropped.begin(), counts.dropped.end(), traffic.dropped);
  }
  return traffic;
}

}  // namespace fathom
