// Which engine gets this request? The router's own decisions, and what they cost to make.
//
// Everything goes through the code that serves real requests: Policy, Steering, Reservation. The
// policies differ in what they are told. Each router has a fleet of its own, with the loads that it
// knows of; what it knows of the engines' caches is in the index that all of them would have alike.
//
// Threads  One.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lab/replay/virtual_engine.h"
#include "lab/replay/virtual_index.h"
#include "lab/replay/virtual_trust.h"
#include "router/fleet/fleet.h"
#include "router/routing/reservation.h"
#include "router/routing/steering.h"
#include "router/routing/testimony.h"
#include "router/routing/text_claim.h"

namespace fathom {

enum class ReplayPolicy : uint8_t {
  kRoundRobin,
  kLeastLoaded,
  kPrefixHash,
  kText,         // kv without events and tokens: by the texts that it sent
  kApproximate,  // kv without events
  kKv,
  kOracle,  // kv that asks the engines' caches themselves
};
constexpr size_t kReplayPolicies = 7;

std::optional<ReplayPolicy> ParseReplayPolicy(std::string_view name);
std::string_view Name(ReplayPolicy policy);

struct VirtualRouterOptions {
  ReplayPolicy policy = ReplayPolicy::kKv;
  SteeringOptions steering;  // mode and events follow from the policy
  Duration event_delay{};
  std::vector<EventFaults> faults;  // by engine; those that are not named have none
  // With kKv: requests bear witness, and ranks are doubted by these rules. Nothing: nobody looks.
  std::optional<TrustRules> trust;
  uint64_t seed = 1;
};

class VirtualRouter {
 public:
  // `number` tells the routers of a group apart; those with the same seed share their secret. The
  // engines and the index outlive it.
  VirtualRouter(const VirtualRouterOptions& options, uint64_t number,
                std::span<VirtualEngine* const> engines, VirtualIndex& index);

  // One request at its engine, from dispatch to its end.
  struct Visit {
    size_t engine = 0;
    double expected = 0;                   // tokens that need not be prefilled there
    std::unique_ptr<Reservation> booked;   // null: the policy keeps no books
    std::unique_ptr<Testimony> testimony;  // null: nobody listens
    std::unique_ptr<TextClaim> claim;      // null: tokens are known
    std::vector<TokenId> text;             // until the first byte
    uint64_t prompt_tokens = 0;
  };
  // `queued` others wait for room. Nothing: no engine has any, wait.
  std::optional<Visit> Route(std::span<const TokenId> tokens, size_t queued, TimePoint now);
  void FirstByte(Visit& visit, TimePoint now);
  // `cached` tokens were found, as the engine says at the end; nothing: it did not come to it.
  void End(Visit& visit, std::optional<uint32_t> cached, TimePoint now);

  // Another engine has this one's place, or another process of it, and gets nothing until it
  // Returns(). All visits there have ended, and the index knows. Both engines outlive the router.
  void Replace(size_t engine, VirtualEngine& by);
  void Return(size_t engine);

  // Looks at the trust in each engine if it is time to; kNever if it never is.
  void LookAtTrust(TimePoint now);
  TimePoint next_look() const { return trust_ ? trust_->next() : kNever; }

  const VirtualTrust* trust() const { return trust_ ? &*trust_ : nullptr; }
  // How long each decision took to make, waits not counted.
  const std::vector<Duration>& decision_times() const { return times_; }
  // Whether nothing is booked anywhere.
  bool AllBooksEmpty(TimePoint now) const;
  Fleet& fleet() { return fleet_; }
  SteeringWorld& world() { return world_; }

 private:
  std::optional<Visit> RouteByLoad();
  std::optional<Visit> RouteByPrompt(std::span<const TokenId> tokens, size_t queued, TimePoint now);
  std::unique_ptr<DepthSource> Depths();
  void Employ(size_t engine);
  void FindPlaces();

  const VirtualRouterOptions options_;
  std::vector<VirtualEngine*> engines_;
  VirtualIndex& index_;
  Fleet fleet_;
  std::shared_ptr<const FleetSnapshot> snapshot_;  // of the fleet
  std::vector<std::shared_ptr<Worker>> workers_;   // by engine
  std::vector<std::shared_ptr<Worker>> gone_;      // requests may still bear witness to them
  std::vector<bool> away_;                         // by engine
  std::vector<size_t> present_;                    // engines that can be had
  std::vector<Place> places_;                      // theirs
  std::unordered_map<const Rank*, size_t> engine_of_;
  Roster roster_;
  Turn turn_{0};
  Policy policy_;
  std::vector<Candidate> candidates_;
  SteeringWorld world_;
  Steering steering_;
  std::optional<VirtualTrust> trust_;
  std::vector<Duration> times_;
};

}  // namespace fathom
