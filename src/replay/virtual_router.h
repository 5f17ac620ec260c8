// Which engine gets this request? The router's own decisions, and what they cost to make.
//
// Everything goes through the code that serves real requests: Chooser, Steering, Reservation. The
// policies differ in what they are told.
//
// Threads  One.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "replay/event_path.h"
#include "replay/virtual_engine.h"
#include "routing/reservation.h"
#include "routing/steering.h"

namespace fathom {

enum class ReplayPolicy : uint8_t {
  kRoundRobin,
  kLeastLoaded,
  kPrefixHash,
  kApproximate,  // kv without events
  kKv,
  kOracle,  // kv that asks the engines' caches themselves
};
constexpr size_t kReplayPolicies = 6;

std::optional<ReplayPolicy> ParseReplayPolicy(std::string_view name);
std::string_view Name(ReplayPolicy policy);

struct VirtualRouterOptions {
  ReplayPolicy policy = ReplayPolicy::kKv;
  SteeringOptions steering;  // mode and events follow from the policy
  Duration event_delay{};
  uint64_t seed = 1;
};

class VirtualRouter {
 public:
  // The engines outlive it.
  VirtualRouter(const VirtualRouterOptions& options, std::span<VirtualEngine* const> engines);

  // One request at its engine, from dispatch to its end.
  struct Visit {
    size_t engine = 0;
    double expected = 0;                  // tokens that need not be prefilled there
    std::unique_ptr<Reservation> booked;  // null: the policy keeps no books
  };
  // `queued` others wait for room. Nothing: no engine has any, wait.
  std::optional<Visit> Route(std::span<const TokenId> tokens, size_t queued, TimePoint now);
  void End(Visit& visit, TimePoint now);

  // An engine published these.
  void Hear(size_t engine, std::vector<KvEvent>& events, TimePoint now);
  void DeliverEvents(TimePoint now);
  TimePoint next_event() const;

  // How long each decision took to make, waits not counted.
  const std::vector<Duration>& decision_times() const { return times_; }
  // Whether nothing is booked anywhere.
  bool AllBooksEmpty(TimePoint now) const;

 private:
  bool listens() const { return options_.policy == ReplayPolicy::kKv; }
  std::optional<Visit> RouteByLoad();
  std::optional<Visit> RouteByPrompt(std::span<const TokenId> tokens, size_t queued, TimePoint now);
  std::unique_ptr<DepthSource> Depths();

  const VirtualRouterOptions options_;
  std::vector<VirtualEngine*> engines_;
  std::vector<Place> places_;
  CacheIndex index_;
  Epochs::Seat seat_;  // the writer's
  std::vector<std::unique_ptr<EventPath>> paths_;
  Turn turn_{0};
  Chooser chooser_;
  std::vector<Candidate> candidates_;
  SteeringWorld world_;
  Steering steering_;
  std::vector<Duration> times_;
};

}  // namespace fathom
