#include "router/serve/etcd_access.h"

#include <utility>

#include "base/file.h"

namespace fathom {
namespace {

constexpr size_t kMaxPassword = 4096;

Result<std::string> PasswordIn(const std::string& path) {
  auto text = ReadFile(path);
  if (!text) return std::unexpected(std::move(text).error().In("--etcd-password-file " + path));
  while (text->ends_with('\n') || text->ends_with('\r')) text->pop_back();
  return text;
}

Result<std::string> PasswordOf(const Settings& settings, const Environment& environment) {
  const std::string& file = settings.Text("etcd-password-file");
  const std::string& variable = settings.Text("etcd-password-env");
  if (!file.empty() && !variable.empty()) {
    return Fail(Blame::kCaller, "set --etcd-password-file or --etcd-password-env, not both");
  }
  if (!file.empty()) return PasswordIn(file);
  if (variable.empty())
    return Fail(Blame::kCaller,
                "--etcd-user needs --etcd-password-file or "
                "--etcd-password-env");
  const auto found = environment.find(variable);
  if (found == environment.end()) {
    return Fail(Blame::kCaller, "--etcd-password-env: the environment variable {} is not set",
                variable);
  }
  return found->second;
}

}  // namespace

Result<EtcdClientOptions> EtcdOptionsOf(const Settings& settings, const Environment& environment) {
  EtcdClientOptions options;
  options.ca_file = settings.Text("etcd-ca-file");
  options.login.user = settings.Text("etcd-user");
  const bool password =
      !settings.Text("etcd-password-file").empty() || !settings.Text("etcd-password-env").empty();
  if (options.login.user.empty()) {
    if (password) return Fail(Blame::kCaller, "an etcd password needs --etcd-user");
    return options;
  }
  TRY(options.login.password, PasswordOf(settings, environment));
  if (options.login.password.empty() || options.login.password.size() > kMaxPassword) {
    return Fail(Blame::kCaller, "the password of --etcd-user must have 1 to {} bytes",
                kMaxPassword);
  }
  return options;
}

}  // namespace fathom
