// service-hides-pods: does the router see every worker, or one address that stands for all?
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/lint/remedy.h"
#include "diagnose/lint/rules.h"

namespace fathom {
namespace {

struct Pods {
  uint64_t now = 0;
  uint64_t most = 0;  // with autoscalers
  bool per_node = false;

  bool several() const { return most > 1 || per_node; }
};

Pods PodsOf(const Plan& plan, const NamedService& service) {
  Pods pods;
  for (const size_t i : plan.EnginesOf(service)) {
    const Program& program = *plan.engines()[i].program;
    pods.now += program.replicas;
    pods.most += std::max(program.replicas, program.most_replicas);
    pods.per_node = pods.per_node || program.per_node;
  }
  return pods;
}

// "Service vllm has 4 pods", "service vllm has a container on each node".
std::string Counted(const NamedService& service, const Pods& pods) {
  const std::string who =
      fmt::format("{} {} has", service.compose ? "service" : "Service", service.name);
  const std::string_view what = service.compose ? "container" : "pod";
  if (pods.per_node) return fmt::format("{} a {} on each node", who, what);
  return pods.most > pods.now ? fmt::format("{} up to {} {}s", who, pods.most, what)
                              : fmt::format("{} {} {}s", who, pods.now, what);
}

// "http://vllm:8000" becomes "dns+http://vllm-pods:8000".
std::string PodsUrl(std::string_view url, const NamedService& service) {
  if (url.starts_with("dns+")) url.remove_prefix(4);
  std::string pods = fmt::format("dns+{}", url);
  const size_t name = pods.find(service.name, pods.find("://"));
  if (name != std::string::npos) pods.insert(name + service.name.size(), "-pods");
  return pods;
}

Fix SeePods(const NamedService& service, const Written& url) {
  Fix fix;
  const std::string pods = PodsUrl(url.value, service);
  fix.what = fmt::format(
      "Add a headless Service beside {} (clusterIP: None, the same selector), and set the worker "
      "URL to {}.",
      service.name, pods);
  fix.setting = fmt::format(
      "apiVersion: v1\nkind: Service\nmetadata:\n  name: {}-pods\nspec:\n  clusterIP: None\n"
      "  selector:",
      service.name);
  for (const auto& [key, value] : service.selector) {
    fix.setting += fmt::format("\n    {}: {}", key, value);
  }
  fix.cost = "None: the old Service stays unchanged for all other clients.";
  fix.verify = "/health of the router lists a worker for each pod.";
  return fix;
}

void CheckUrl(const Plan& plan, const Program& router, const Written& url, LintFindings& findings) {
  const NamedService* service = plan.ServiceOf(url, router);
  if (service == nullptr) return;
  if (url.value.starts_with("k8s://")) return;
  // The name of a headless Service is each pod only to those who look it up again and again.
  const bool followed = url.value.starts_with("dns+");
  if (service->headless && followed) return;
  const Pods pods = PodsOf(plan, *service);
  if (!pods.several()) return;
  Finding finding = MakeFinding(FindingId::kServiceHidesPods, router.name,
                                fmt::format("{} treats {} as one worker, but {}", Called(router),
                                            url.value, Counted(*service, pods)));
  finding.why =
      service->compose
          ? "The name stands for any of the containers: the router cannot choose one, and the "
            "events of all of them look like those of one cache."
          : "Kubernetes picks a pod for each connection: the router cannot choose the pod, and the "
            "events of all pods look like those of one cache.";
  finding.place = url.place;
  finding.evidence.push_back(
      fmt::format("{}: {} {}{}", ToText(service->place), service->compose ? "service" : "Service",
                  service->name, service->headless && !service->compose ? ", headless" : ""));
  Remedy remedy;
  remedy.fix = SeePods(*service, url);
  if (service->headless) {
    const std::string pods_url = fmt::format("dns+{}", url.value);
    remedy.fix.what = fmt::format("Set the worker URL to {}: Fathom then has one worker per {}.",
                                  pods_url, service->compose ? "container" : "pod");
    remedy.fix.setting = pods_url;
    remedy.edits = Rewrite(plan, url, pods_url);
  }
  findings.push_back(WithRemedies(plan, std::move(finding), {std::move(remedy)}));
}

}  // namespace

void CheckServices(const Plan& plan, LintFindings& findings) {
  for (const PlannedRouter& router : plan.routers()) {
    if (router.program->role != ProgramRole::kFathom) continue;
    for (const Written& url : router.settings.workers) {
      CheckUrl(plan, *router.program, url, findings);
    }
  }
}

}  // namespace fathom
