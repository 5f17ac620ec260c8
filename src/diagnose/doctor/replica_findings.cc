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

std::string IdsOfDeaf(const RouterLook& router) {
  std::string ids;
  for (const RoutedReplica& replica : router.replicas) {
    if (replica.self || replica.hears_us) continue;
    ids += (ids.empty() ? "" : ", ") + replica.id;
  }
  return ids;
}

// Replicas with other workers than this one's, though they serve the same models.
std::string IdsThatDiffer(const RouterLook& router, const RoutedReplica& own) {
  std::string ids;
  for (const RoutedReplica& replica : router.replicas) {
    if (replica.self || replica.models != own.models || replica.workers == own.workers) continue;
    ids += fmt::format("{}{} has {}", ids.empty() ? "" : ", ", replica.id, replica.workers);
  }
  return ids;
}

}  // namespace

std::vector<Finding> ReplicaFindings(const RouterLook& router) {
  std::vector<Finding> findings;
  if (!router.carrier.known) return findings;
  if (router.carrier.status == "down") {
    findings.push_back(Alone(router, "The router does not reach the others of its group",
                             fmt::format("the carrier of group {} is down: {}",
                                         router.carrier.group, router.carrier.error)));
    return findings;
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
        fmt::format("{} times another process spoke with a known id; each overwrites what the "
                    "other reported",
                    router.carrier.conflicts)));
  }
  if (const std::string deaf = IdsOfDeaf(router); !deaf.empty()) {
    findings.push_back(Alone(router, "Other routers of the group do not hear this one",
                             fmt::format("heard, but not hearing it: {}", deaf)));
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
