#include "diagnose/doctor/kube_look.h"

#include <algorithm>
#include <span>

#include "base/peer_text.h"
#include "diagnose/doctor/kube_yaml.h"
#include "diagnose/doctor/read_only_client.h"
#include "diagnose/manifest/deployment_reader.h"
#include "io/kube/exec_credential.h"
#include "io/kube/kube_client.h"

namespace fathom {
namespace {

constexpr size_t kMaxLogs = 50;

constexpr KubeResource kPods = {"", "v1", "pods", "Pod"};
// Secrets are not here, and nothing else is ever asked for.
constexpr KubeResource kResources[] = {
    {"apps", "v1", "deployments", "Deployment"},
    {"apps", "v1", "statefulsets", "StatefulSet"},
    {"apps", "v1", "daemonsets", "DaemonSet"},
    {"leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet"},
    {"nvidia.com", "v1alpha1", "dynamographdeployments", "DynamoGraphDeployment"},
    {"", "v1", "services", "Service"},
    {"", "v1", "configmaps", "ConfigMap"},
    kPods,
};

std::string ApiVersion(const KubeResource& resource) {
  return resource.group.empty() ? std::string(resource.version)
                                : fmt::format("{}/{}", resource.group, resource.version);
}

// A cluster may do without it.
bool IsExtension(const KubeResource& resource) { return resource.group.contains('.'); }

std::string NameOf(const Json& object) {
  const Json* const metadata = object.Find("metadata");
  const Json* const name = metadata == nullptr ? nullptr : metadata->Find("name");
  return name == nullptr || name->string() == nullptr ? "" : *name->string();
}

// A pod with that container alone, so that what is recognised in it is that container.
Json WithContainerAlone(const Json& pod, std::string_view name) {
  Json::Array kept;
  const Json* const spec = pod.Find("spec");
  const Json* const containers = spec == nullptr ? nullptr : spec->Find("containers");
  if (containers != nullptr && containers->array() != nullptr) {
    for (const Json& container : *containers->array()) {
      const Json* const called = container.Find("name");
      if (called != nullptr && called->string() != nullptr && *called->string() == name) {
        kept.push_back(container);
      }
    }
  }
  Json::Object bare;
  bare.emplace_back("containers", Json(std::move(kept)));
  Json::Object whole;
  whole.emplace_back("spec", Json(std::move(bare)));
  return Json(std::move(whole));
}

bool IsServing(const Json& pod, std::string_view container) {
  SourceFile file{"pod.yaml", KubeObjectYaml(WithContainerAlone(pod, container), "v1", "Pod")};
  const ReadDeployment read = ReadDeploymentFiles({&file, 1});
  return std::ranges::any_of(read.deployment.programs, [](const Program& program) {
    return program.role != ProgramRole::kOther;
  });
}

std::string Counted(size_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

// One look at one namespace.
class ClusterLook {
 public:
  ClusterLook(KubeClient& client, const KubeTarget& target, const PodLogSink& sink, KubeView& view)
      : client_(client), target_(target), sink_(sink), view_(view) {}

  Task<void> Run() {
    for (const KubeResource& resource : kResources) {
      auto reading = ReadAll(resource);
      const bool reachable = co_await reading;
      if (!reachable) co_return;
    }
    if (target_.log_lines == 0) {
      view_.missing.emplace_back("Pods' logs were not read: --kube-log-lines is 0.");
      co_return;
    }
    auto reading = ReadLogs();
    co_await reading;
  }

 private:
  struct LogName {
    std::string pod;
    std::string container;
  };

  // False: there is no sense in asking for more.
  Task<bool> ReadAll(const KubeResource& resource) {
    auto listing = client_.List(resource, view_.network_namespace);
    const auto list = co_await listing;
    LookedAt looked;
    looked.what = fmt::format("Kubernetes {}", resource.plural);
    if (!list) {
      looked.outcome = Shown(list.error().what, 600);
      const bool forbidden = looked.outcome.starts_with("403");
      if (!view_.seen && !forbidden) view_.problem = looked.outcome;
      view_.missing.push_back(fmt::format("{}: {}.", looked.what, looked.outcome));
      view_.looked_at.push_back(std::move(looked));
      co_return view_.problem.empty();
    }
    view_.seen |= list->known;
    looked.seen = list->known || IsExtension(resource);
    looked.outcome =
        list->known ? fmt::format("{}", list->objects.size()) : "the cluster has no such objects";
    if (!list->incomplete.empty()) {
      looked.outcome += "; " + list->incomplete;
      view_.missing.push_back(fmt::format("{}: {}.", looked.what, list->incomplete));
    }
    view_.looked_at.push_back(std::move(looked));
    for (const Json& object : list->objects) Take(resource, object);
    co_return true;
  }

  // A pod that something else has made says what that says already.
  void Take(const KubeResource& resource, const Json& object) {
    if (resource.kind == kPods.kind) {
      KubePod pod = ReadPod(object);
      for (KubeContainer& container : pod.containers) {
        container.serves = IsServing(object, container.name);
      }
      view_.pods.push_back(std::move(pod));
      if (!view_.pods.back().owner.empty()) return;
    }
    view_.files.push_back({fmt::format("kube:{}/{}", resource.plural, Shown(NameOf(object), 253)),
                           KubeObjectYaml(object, ApiVersion(resource), resource.kind)});
  }

  std::vector<LogName> LogNames() {
    std::vector<LogName> serving;
    std::vector<LogName> all;
    for (const KubePod& pod : view_.pods) {
      for (const KubeContainer& container : pod.containers) {
        all.push_back({pod.name, container.name});
        if (container.serves) serving.push_back({pod.name, container.name});
      }
    }
    std::vector<LogName>& chosen = serving.empty() ? all : serving;
    if (chosen.size() > kMaxLogs) {
      view_.missing.push_back(fmt::format("Logs of {} of {} containers were left out.",
                                          chosen.size() - kMaxLogs, chosen.size()));
      chosen.resize(kMaxLogs);
    }
    return std::move(chosen);
  }

  Task<void> ReadLogs() {
    for (const LogName& name : LogNames()) {
      auto reading = ReadLog(name);
      const bool allowed = co_await reading;
      if (!allowed) co_return;
    }
  }

  // False: the others would fare no better.
  Task<bool> ReadLog(const LogName& name) {
    const std::string source =
        fmt::format("kube:pods/{}/{}", Shown(name.pod, 253), Shown(name.container, 63));
    LookedAt looked;
    looked.what = "log " + source;
    const KubeClient::Sink sink = [&](std::string_view piece) { sink_(source, piece); };
    auto reading =
        client_.ReadLog(view_.network_namespace, name.pod, name.container, target_.log_lines, sink);
    const auto read = co_await reading;
    looked.seen = read.has_value();
    looked.outcome = read ? Counted(*read, "byte") : Shown(read.error().what, 600);
    const bool forbidden = !read && looked.outcome.starts_with("403");
    if (!read) view_.missing.push_back(fmt::format("{}: {}.", looked.what, looked.outcome));
    view_.looked_at.push_back(std::move(looked));
    co_return !forbidden;
  }

  KubeClient& client_;
  const KubeTarget& target_;
  const PodLogSink& sink_;
  KubeView& view_;
};

Task<void> LookAndStop(Loop& loop, ClusterLook& look) {
  auto running = look.Run();
  co_await running;
  loop.Stop();
}

void SayHowPodsFare(KubeView& view) {
  const auto count = [&](auto&& which) {
    return static_cast<size_t>(std::ranges::count_if(view.pods, which));
  };
  const size_t ready = count([](const KubePod& pod) { return pod.ready; });
  const size_t restarted = count([](const KubePod& pod) { return pod.Restarts() > 0; });
  const size_t killed = count([](const KubePod& pod) { return pod.OutOfMemory(); });
  if (view.seen && view.pods.empty() && view.files.empty()) {
    view.missing.push_back(
        fmt::format("Namespace {} has no objects to check; choose another with --namespace.",
                    view.network_namespace));
  }
  if (view.pods.empty()) return;
  view.lines.push_back(fmt::format(
      "{} in namespace {}: {} ready, {} restarted, {} killed out of memory.",
      Counted(view.pods.size(), "pod"), view.network_namespace, ready, restarted, killed));
}

// The access with what its plugin says, if it has one.
Result<KubeAccess> Enter(const KubeTarget& target, KubeView& view) {
  TRY(KubeAccess access, FindKubeAccess(target.wish, target.surroundings));
  view.server = access.server.ToString();
  view.network_namespace = access.network_namespace;
  view.lines.push_back(
      fmt::format("The Kubernetes API at {} was read as {}, with GET requests only.", view.server,
                  access.origin));
  if (!access.plugin) return access;
  view.lines.push_back(fmt::format("The kubeconfig's program {} was run to get the credentials.",
                                   Shown(access.plugin->command)));
  TRY(access.identity, RunExecPlugin(*access.plugin, access));
  return access;
}

}  // namespace

KubeView LookAtCluster(const KubeTarget& target, const PodLogSink& sink) {
  KubeView view;
  Loop loop;
  Resolver resolver;
  SentRequests sent;
  auto access = Enter(target, view);
  if (!access) {
    view.problem = access.error().what;
    return view;
  }
  const auto count = [&sent](std::string_view method, const std::string& url) {
    sent.Count(method, url);
  };
  auto client = KubeClient::Create(loop, resolver, *access,
                                   {.patience = target.patience, .on_request = count});
  if (!client) {
    view.problem = client.error().what;
    return view;
  }
  ClusterLook look(**client, target, sink, view);
  loop.Post([&] { Spawn(LookAndStop(loop, look)); });
  loop.Run();
  resolver.Stop();
  if (!view.seen && view.problem.empty()) view.problem = "no object in the namespace can be read";
  SayHowPodsFare(view);
  view.sent = sent.All();
  return view;
}

}  // namespace fathom
