#include "io/kube/kubeconfig.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "base/peer_text.h"
#include "base/text.h"
#include "codec/base64.h"
#include "io/kube/config_tree.h"

namespace fathom {
namespace {

constexpr std::string_view kDefaultNamespace = "default";

// One file of a kubeconfig.
struct KubeconfigFile {
  std::string name;
  ConfigNode root;

  std::filesystem::path folder() const { return std::filesystem::path(name).parent_path(); }
};

// A named entry, and the file that has it.
struct Entry {
  const ConfigNode* node = nullptr;
  const KubeconfigFile* file = nullptr;
};

using KubeconfigFiles = std::vector<std::unique_ptr<KubeconfigFile>>;

Result<std::unique_ptr<KubeconfigFile>> ReadConfig(const std::string& path) {
  auto text = ReadFile(path);
  if (!text) return std::unexpected(std::move(text).error().In("kubeconfig " + path));
  auto file = std::make_unique<KubeconfigFile>();
  file->name = path;
  auto root = ReadConfigTree(*text);
  if (!root) return std::unexpected(std::move(root).error().In("kubeconfig " + path));
  file->root = *std::move(root);
  return file;
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// The files to read, in the order in which they decide.
std::vector<std::string> ConfigPaths(const KubeWish& wish, const KubeSurroundings& around) {
  if (!wish.kubeconfig.empty()) return {wish.kubeconfig};
  std::vector<std::string> paths;
  if (!around.kubeconfig.empty()) {
    for (const std::string_view path : SplitAny(around.kubeconfig, ":")) {
      if (!path.empty() && Exists(std::string(path))) paths.emplace_back(path);
    }
    return paths;
  }
  const std::string own = around.home + "/.kube/config";
  if (!around.home.empty() && Exists(own)) paths.push_back(own);
  return paths;
}

std::string NamesOf(const KubeconfigFiles& files) {
  std::string names;
  for (const auto& file : files) names += (names.empty() ? "" : ":") + file->name;
  return names;
}

Entry FindEntry(const KubeconfigFiles& files, std::string_view list, std::string_view name) {
  for (const auto& file : files) {
    const ConfigNode* const entries = file->root.Find(list);
    if (entries == nullptr) continue;
    for (const ConfigNode& item : entries->items) {
      if (item.TextOf("name") == name) return {&item, file.get()};
    }
  }
  return {};
}

std::string CurrentContext(const KubeconfigFiles& files) {
  for (const auto& file : files) {
    const std::string_view current = file->root.TextOf("current-context");
    if (!current.empty()) return std::string(current);
  }
  return "";
}

std::string ContextNames(const KubeconfigFiles& files) {
  constexpr size_t kShown = 10;
  std::string names;
  size_t count = 0;
  for (const auto& file : files) {
    const ConfigNode* const list = file->root.Find("contexts");
    if (list == nullptr) continue;
    for (const ConfigNode& item : list->items) {
      if (++count > kShown) return names + " ...";
      names += (names.empty() ? "" : ", ") + Shown(item.TextOf("name"), 60);
    }
  }
  return names;
}

bool IsTrue(std::string_view text) { return EqualsIgnoreCase(text, "true"); }

// Reads one context with its cluster and its user.
class ContextReader {
 public:
  ContextReader(const KubeconfigFiles& files, std::string name)
      : files_(files), name_(std::move(name)) {}

  Result<KubeAccess> Read() {
    TRY(const Entry context, Part("contexts", name_, "context"));
    access_.origin = fmt::format("context {} of {}", Shown(name_, 100), context.file->name);
    access_.network_namespace = context.node->TextOf("namespace");
    TRY(const Entry cluster, Part("clusters", context.node->TextOf("cluster"), "cluster"));
    TRY_VOID(ReadCluster(cluster));
    // Over plain HTTP nobody is told who we are, as with kubectl.
    if (!access_.server.tls() || context.node->TextOf("user").empty()) return std::move(access_);
    TRY(const Entry user, Part("users", context.node->TextOf("user"), "user"));
    TRY_VOID(ReadUser(user));
    return std::move(access_);
  }

 private:
  template <class... Args>
  std::unexpected<Error> Wrong(fmt::format_string<Args...> text, Args&&... args) const {
    return Fail(Blame::kCaller, "kubeconfig {}, context {}: {}", NamesOf(files_), Shown(name_, 100),
                fmt::format(text, std::forward<Args>(args)...));
  }

  Result<Entry> Part(std::string_view list, std::string_view name, std::string_view member) const {
    Entry entry = FindEntry(files_, list, name);
    if (entry.node == nullptr) {
      if (list == "contexts") {
        return Wrong("there is no such context; choose one with --kube-context: {}",
                     ContextNames(files_));
      }
      return Wrong("it names the {} '{}', which is not in the file", member, Shown(name, 100));
    }
    entry.node = entry.node->Find(member);
    if (entry.node == nullptr) return Wrong("the {} '{}' is empty", member, Shown(name, 100));
    return entry;
  }

  Result<void> ReadCluster(const Entry& cluster) {
    const std::string_view server = cluster.node->TextOf("server");
    if (server.contains('@')) return Wrong("server must be a URL without a user and a password");
    auto url = Url::Parse(server);
    if (!url) return Wrong("server: {}", Shown(url.error().what));
    access_.server = *std::move(url);
    access_.tls_server_name = cluster.node->TextOf("tls-server-name");
    if (!cluster.node->TextOf("proxy-url").empty()) {
      return Wrong(
          "proxy-url is not supported here; run kubectl proxy, and name a context whose "
          "server is http://127.0.0.1:8001");
    }
    if (IsTrue(cluster.node->TextOf("insecure-skip-tls-verify")) && access_.server.tls()) {
      return Wrong(
          "insecure-skip-tls-verify is refused: it would send the credentials to any server that "
          "answers; give certificate-authority-data instead");
    }
    TRY(access_.authorities,
        DataOrFile(cluster, "certificate-authority", access_.files.authorities));
    return {};
  }

  Result<void> ReadUser(const Entry& user) {
    KubeIdentity& identity = access_.identity;
    TRY(identity.certificate, DataOrFile(user, "client-certificate", access_.files.certificate));
    TRY(identity.key, DataOrFile(user, "client-key", access_.files.key));
    if (identity.certificate.empty() != identity.key.empty()) {
      return Wrong("a client certificate and its key must be given together");
    }
    TRY(identity.token, FileAt(user, "tokenFile", access_.files.token));
    // A token in the file itself loses against a tokenFile, as with kubectl.
    if (identity.token.empty()) identity.token = user.node->TextOf("token");
    identity.token = Trim(identity.token);
    identity.username = user.node->TextOf("username");
    identity.password = user.node->TextOf("password");
    for (const std::string_view name : {"auth-provider", "as", "as-uid", "as-groups"}) {
      if (user.node->Find(name) == nullptr) continue;
      return Wrong(
          "the user's {} is not supported here; a token (kubectl create token ...), a "
          "client certificate or an exec plugin is",
          name);
    }
    if (const ConfigNode* exec = user.node->Find("exec")) return ReadPlugin({exec, user.file});
    return {};
  }

  Result<void> ReadPlugin(const Entry& exec) {
    ExecPlugin plugin;
    plugin.command = exec.node->TextOf("command");
    if (plugin.command.empty()) return Wrong("the user's exec names no command");
    // A path is one beside the file; a name alone is looked for in $PATH.
    const std::filesystem::path path(plugin.command);
    if (path.is_relative() && path.has_parent_path()) {
      plugin.command = (exec.file->folder() / path).string();
    }
    if (const ConfigNode* arguments = exec.node->Find("args")) {
      for (const ConfigNode& item : arguments->items) plugin.arguments.push_back(item.text);
    }
    if (const ConfigNode* variables = exec.node->Find("env")) {
      for (const ConfigNode& item : variables->items) {
        plugin.variables.emplace_back(item.TextOf("name"), item.TextOf("value"));
      }
    }
    plugin.api_version = exec.node->TextOf("apiVersion");
    plugin.install_hint = exec.node->TextOf("installHint");
    plugin.interactive_mode = exec.node->TextOf("interactiveMode");
    plugin.provide_cluster_info = IsTrue(exec.node->TextOf("provideClusterInfo"));
    access_.plugin = std::move(plugin);
    return {};
  }

  // What is in the file as base64, or in a file of its own; empty where it is in neither.
  Result<std::string> DataOrFile(const Entry& entry, const std::string& name,
                                 std::string& file) const {
    const std::string_view data = entry.node->TextOf(name + "-data");
    if (data.empty()) return FileAt(entry, name, file);
    auto decoded = DecodeBase64(data);
    if (!decoded) return Wrong("{}-data is not base64", name);
    return *std::move(decoded);
  }

  // Its path is left in `whole`.
  Result<std::string> FileAt(const Entry& entry, std::string_view name, std::string& whole) const {
    const std::string_view path = entry.node->TextOf(name);
    if (path.empty()) return "";
    whole = (entry.file->folder() / path).string();
    auto text = ReadFile(whole);
    if (!text) return Wrong("{} {}: {}", name, Shown(whole), text.error().what);
    return *std::move(text);
  }

  const KubeconfigFiles& files_;
  const std::string name_;
  KubeAccess access_;
};

// The account that Kubernetes gives to every pod.
Result<KubeAccess> OwnAccount(const KubeSurroundings& around) {
  KubeAccess access;
  access.origin = "the account of this pod";
  const bool bare_ipv6 = around.service_host.contains(':');
  const std::string host = bare_ipv6 ? "[" + around.service_host + "]" : around.service_host;
  const std::string port = around.service_port.empty() ? "443" : around.service_port;
  TRY(access.server, Url::Parse("https://" + host + ":" + port));
  const auto read = [&](const char* name) -> Result<std::string> {
    const std::string path = around.account_folder + "/" + name;
    auto text = ReadFile(path);
    if (!text) return std::unexpected(std::move(text).error().In("the pod's account: " + path));
    return *std::move(text);
  };
  access.files.token = around.account_folder + "/token";
  access.files.authorities = around.account_folder + "/ca.crt";
  TRY(const std::string token, read("token"));
  access.identity.token = Trim(token);
  TRY(access.authorities, read("ca.crt"));
  if (const auto name = read("namespace")) access.network_namespace = Trim(*name);
  return access;
}

Result<KubeAccess> FromFiles(const KubeWish& wish, const std::vector<std::string>& paths) {
  KubeconfigFiles files;
  for (const std::string& path : paths) {
    TRY(auto file, ReadConfig(path));
    files.push_back(std::move(file));
  }
  const std::string context = wish.context.empty() ? CurrentContext(files) : wish.context;
  if (context.empty()) {
    return Fail(Blame::kCaller,
                "kubeconfig {} has no current-context; choose one with --kube-context: {}",
                NamesOf(files), ContextNames(files));
  }
  return ContextReader(files, context).Read();
}

// It becomes part of a path.
Result<void> CheckNamespace(const KubeAccess& access) {
  const bool label = std::ranges::all_of(access.network_namespace, [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
  if (!label || access.network_namespace.size() > 63) {
    return Fail(Blame::kCaller, "'{}' is not a valid namespace name",
                Shown(access.network_namespace, 80));
  }
  return {};
}

}  // namespace

KubeSurroundings KubeSurroundings::OfProcess() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  KubeSurroundings around;
  around.kubeconfig = variable("KUBECONFIG");
  around.home = variable("HOME");
  around.service_host = variable("KUBERNETES_SERVICE_HOST");
  around.service_port = variable("KUBERNETES_SERVICE_PORT");
  return around;
}

Result<KubeAccess> FindKubeAccess(const KubeWish& wish, const KubeSurroundings& surroundings) {
  const std::vector<std::string> paths = ConfigPaths(wish, surroundings);
  if (paths.empty() && surroundings.service_host.empty()) {
    return Fail(Blame::kCaller,
                "no kubeconfig: neither --kubeconfig nor $KUBECONFIG nor ~/.kube/config names a "
                "file that exists, and this is not a pod of a cluster");
  }
  auto found = paths.empty() ? OwnAccount(surroundings) : FromFiles(wish, paths);
  if (!found) return found;
  if (!wish.network_namespace.empty()) found->network_namespace = wish.network_namespace;
  if (found->network_namespace.empty()) found->network_namespace = kDefaultNamespace;
  TRY_VOID(CheckNamespace(*found));
  return found;
}

}  // namespace fathom
