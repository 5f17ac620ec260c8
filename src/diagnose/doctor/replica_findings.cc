#include "diagnose/doctor/replica_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "diagnose/doctor/remedies.h"

namespace fathom {
namespace {

constexpr std::string_view kAloneCosts =
    "Requests succeed, but each router sees only the load that it has placed itself: bursts of "
    "several routers meet on the same rank, and sessions change their worker";

Finding AboutGroup(const RouterLook& router, FindingId id, std::string message,
                   std::string evidence) {
  Finding finding = MakeFinding(id, router.url, std::move(message));
  finding.fixes = RemediesFor(id, {.router = RouterKind::kFathom});
  finding.evidence.push_back(fmt::format("GET {}/health: {}", router.url, evidence));
  finding.gain = 0.1;
  finding.gain_basis = "as judged by the running router";
  return finding;
}

Finding Alone(const RouterLook& router, std::string message, std::string evidence) {
  Finding finding =
      AboutGroup(router, FindingId::kReplicaAlone, std::move(message), std::move(evidence));
  finding.why = kAloneCosts;
  return finding;
}

// Two routers that have just met hear each other a moment later.
constexpr double kTimeToHear = 5;  // seconds, as for /health

std::string IdsOfDeaf(const RouterLook& router) {
  std::string ids;
  for (const RoutedReplica& replica : router.replicas) {
    if (replica.self || replica.hears_us || replica.unheard < kTimeToHear) continue;
    ids += (ids.empty() ? "" : ", ") + replica.id;
  }
  return ids;
}

bool SameWorkers(const RoutedReplica& a, const RoutedReplica& b) {
  const bool comparable = !a.worker_set.empty() && !b.worker_set.empty();
  return a.workers == b.workers && (!comparable || a.worker_set == b.worker_set);
}

// Replicas with other workers than this one's, though they serve the same models.
std::string IdsThatDiffer(const RouterLook& router, const RoutedReplica& own) {
  std::string ids;
  for (const RoutedReplica& replica : router.replicas) {
    if (replica.self || replica.models != own.models || SameWorkers(replica, own)) continue;
    ids += fmt::format("{}{} has {}{}", ids.empty() ? "" : ", ", replica.id, replica.workers,
                       replica.workers == own.workers ? " others" : "");
  }
  return ids;
}

// A replica speaks every second, so its word is late long before it is forgotten.
constexpr double kLate = 2.5;  // seconds

std::string IdsThatAreLate(const RouterLook& router) {
  std::string ids;
  for (const RoutedReplica& replica : router.replicas) {
    if (replica.self || replica.age < kLate) continue;
    ids += fmt::format("{}{} was heard {:.1f} s ago", ids.empty() ? "" : ", ", replica.id,
                       replica.age);
  }
  return ids;
}

Finding CarrierFinding(const RouterLook& router) {
  const ReplicaCarrierLook& carrier = router.carrier;
  const bool down = carrier.status == "down";
  return Alone(router,
               down ? "The router does not reach the others of its group"
                    : "The carrier of the router's group does not work fully",
               fmt::format("the carrier of group {} is {}: {}", carrier.group,
                           down ? "down" : "up, with a problem", carrier.error));
}

}  // namespace

std::vector<Finding> ReplicaFindings(const RouterLook& router) {
  std::vector<Finding> findings;
  if (!router.carrier.known) return findings;
  if (router.carrier.status == "down") {
    findings.push_back(CarrierFinding(router));
    return findings;
  }
  // As in /health: a mesh is up while it reaches one.
  if (router.carrier.kind == "nats" && !router.carrier.error.empty()) {
    findings.push_back(CarrierFinding(router));
  }
  const auto self = std::ranges::find(router.replicas, true, &RoutedReplica::self);
  const bool nobody = router.replicas.size() == 1 && self != router.replicas.end();
  if (nobody) {
    findings.push_back(
        Alone(router, "The router hears no other router of its group",
              fmt::format("only {} is in group {}", self->id, router.carrier.group)));
  }
  if (router.carrier.conflicts > 0) {
    findings.push_back(Alone(
        router, "Two routers have the same replica id",
        fmt::format("{} times since its start another process spoke with an id that is in use; the "
                    "first one keeps the id, and what the other has placed is not seen",
                    router.carrier.conflicts)));
  }
  if (const std::string deaf = IdsOfDeaf(router); !deaf.empty()) {
    findings.push_back(Alone(router, "Other routers of the group do not hear this one",
                             fmt::format("heard, but not hearing it: {}", deaf)));
  }
  if (const std::string late = IdsThatAreLate(router); !late.empty()) {
    findings.push_back(
        Alone(router, "The state of other routers is stale",
              fmt::format("each speaks every second and is forgotten when it is silent for "
                          "--replica-timeout; {}",
                          late)));
  }
  if (self == router.replicas.end()) return findings;
  if (const std::string others = IdsThatDiffer(router, *self); !others.empty()) {
    Finding finding = AboutGroup(
        router, FindingId::kReplicasDiffer, "Routers of the group see different workers",
        fmt::format("{} has {} workers that it can route to, {}", self->id, self->workers, others));
    finding.why =
        "A worker that only some routers know gets requests from those alone; the others' share of "
        "the load falls on the rest";
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace fathom
