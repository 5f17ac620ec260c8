// Which Kubernetes API may we ask, and as whom?
//
// In the order of kubectl: the file of --kubeconfig; the files of $KUBECONFIG, of which the first
// that has a name decides; ~/.kube/config; and where none of these is there, the account of the pod
// that this runs in.
//
//   TRY(const KubeAccess access, FindKubeAccess({.context = "prod"},
//   KubeSurroundings::OfProcess()));
//
// Secrets  What proves who we are stands in `identity` alone. No error and no note has any of it.
// Errors   kCaller: one line that names the file, the context and what would help.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "codec/url.h"

namespace fathom {

// What the operator asked for.
struct KubeWish {
  std::string kubeconfig;         // a file; empty: as the surroundings say
  std::string context;            // empty: the file's current one
  std::string network_namespace;  // empty: the context's
};

// What the process finds around it.
struct KubeSurroundings {
  std::string kubeconfig;  // $KUBECONFIG
  std::string home;
  std::string service_host;  // $KUBERNETES_SERVICE_HOST
  std::string service_port;
  std::string account_folder = "/var/run/secrets/kubernetes.io/serviceaccount";

  static KubeSurroundings OfProcess();
};

// Who we are, for the API server. Never shown.
struct KubeIdentity {
  std::string token;
  std::string username;
  std::string password;
  std::string certificate;  // PEM, with its chain
  std::string key;          // PEM
  // When the exec plugin says that it ends.
  std::optional<std::chrono::system_clock::time_point> expires = {};
};

// The files that parts of an access were read from, so that they can be read again when they have
// changed; empty: the part was not in a file of its own.
struct KubeFiles {
  std::string token;
  std::string authorities;
  std::string certificate;
  std::string key;

  bool any() const {
    return !token.empty() || !authorities.empty() || !certificate.empty() || !key.empty();
  }
};

// A program of the operator's that says who we are.
struct ExecPlugin {
  std::string command;
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> variables;
  std::string api_version;
  std::string install_hint;
  std::string interactive_mode;
  bool provide_cluster_info = false;
};

struct KubeAccess {
  std::string origin;  // "context prod of /home/ada/.kube/config", "the account of this pod"
  Url server;
  std::string tls_server_name;  // empty: the server's own
  std::string authorities;      // PEM; empty: the system's
  std::string network_namespace;
  KubeIdentity identity;
  KubeFiles files;
  std::optional<ExecPlugin> plugin;  // to be run for the identity: exec_credential.h
};

Result<KubeAccess> FindKubeAccess(const KubeWish& wish, const KubeSurroundings& surroundings);

}  // namespace fathom
