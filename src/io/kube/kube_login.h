// Who are we for the API server at this moment, and how is it reached?
//
// Credentials do not last. A pod's token is replaced in its file before its hour is over, so are
// certificates, and what an exec plugin says has an end. The files are looked at again before a
// request; the plugin is run again shortly before its credential ends. After a refusal (401) both
// are done at once.
//
//   auto entering = login.Current();
//   auto pass = co_await entering;
//   ...
//   if (status == 401) login.Refused(*pass);
//
// Threads    On the loop. Files are read and the plugin runs on a thread of its own.
// Staleness  A file that changes is seen by the first request that is more than kLookAgain behind
//            the last look. A file that cannot be read, or is no certificate, changes nothing: what
//            was read before is used on.
// Errors     The plugin's, in its words (exec_credential.h). No error has a secret in it.
#pragma once

#include <memory>
#include <string>

#include "io/http/client_connection.h"
#include "io/kube/kubeconfig.h"
#include "io/net/task.h"

namespace fathom {

// Immutable: a request keeps the one that it began with.
struct KubePass {
  Endpoint endpoint;
  std::string authorization;  // the header's value; empty: none
};

class KubeLogin {
 public:
  static constexpr Duration kLookAgain = std::chrono::seconds(1);
  // A plugin whose credential is refused is not run more often than this.
  static constexpr Duration kPluginPause = std::chrono::seconds(5);
  // A credential is replaced this long before its end.
  static constexpr Duration kBeforeExpiry = std::chrono::seconds(20);

  // Refuses certificates and keys that cannot be used.
  static Result<std::unique_ptr<KubeLogin>> Create(Loop& loop, const KubeAccess& access);
  // Ends a plugin that runs; who waits for it is told so.
  ~KubeLogin();
  KubeLogin(const KubeLogin&) = delete;
  KubeLogin& operator=(const KubeLogin&) = delete;

  Task<Result<std::shared_ptr<const KubePass>>> Current();
  // The server does not know this pass.
  void Refused(const std::shared_ptr<const KubePass>& pass);

 private:
  struct State;
  explicit KubeLogin(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;
};

}  // namespace fathom
