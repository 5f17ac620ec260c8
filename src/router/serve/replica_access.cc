#include "router/serve/replica_access.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/file.h"
#include "base/secret.h"
#include "router/gateway/peer_directory.h"
#include "router/replicas/replica_message.h"

namespace fathom {
namespace {

constexpr size_t kShortestKey = 16;
constexpr size_t kLongestKey = 4096;

constexpr std::string_view kOfGroups[] = {"replica-listen", "replica-url", "replica-id",
                                          "replica-key-file", "replica-ca-file"};
constexpr std::string_view kOfNats[] = {"nats-user",      "nats-password-file", "nats-token-file",
                                        "nats-nkey-file", "nats-creds-file",    "nats-ca-file",
                                        "nats-cert-file", "nats-key-file"};
constexpr std::string_view kNatsAccounts[] = {"nats-user", "nats-token-file", "nats-nkey-file",
                                              "nats-creds-file"};

Result<std::string> SecretIn(std::string_view option, const std::string& path) {
  auto text = ReadFile(path);
  if (!text)
    return std::unexpected(std::move(text).error().In(fmt::format("--{} {}", option, path)));
  while (text->ends_with('\n') || text->ends_with('\r')) text->pop_back();
  if (text->empty() || text->size() > kLongestKey) {
    return Fail(Blame::kCaller, "--{} {}: 1 to {} bytes are expected, not {}", option, path,
                kLongestKey, text->size());
  }
  return text;
}

// Of the file, or empty.
Result<std::string> SecretOf(const Settings& settings, std::string_view option) {
  const std::string& path = settings.Text(option);
  if (path.empty()) return std::string();
  return SecretIn(option, path);
}

Result<std::string> KeyOf(const Settings& settings) {
  TRY(std::string key, SecretOf(settings, "replica-key-file"));
  if (!settings.Text("replica-key-file").empty() && key.size() < kShortestKey) {
    return Fail(Blame::kCaller,
                "--replica-key-file {}: the key has {} bytes; at least {} bytes are "
                "needed, for example: head -c 32 /dev/urandom | base64",
                settings.Text("replica-key-file"), key.size(), kShortestKey);
  }
  return key;
}

// Host names may have other characters, and be longer. A port that the system chooses tells no two
// routers apart.
std::string IdOfHost(int64_t port) {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') name = {'f'};
  std::string id = name.data();
  std::ranges::replace_if(id, [](char c) { return !IsReplicaName(std::string_view(&c, 1)); }, '-');
  const std::string ending =
      port != 0 ? fmt::format("-{}", port) : fmt::format("-{:x}", RandomSecret());
  id.resize(std::min(id.size(), ReplicaMessage::kLongestName - ending.size()));
  return id + ending;
}

Result<std::string> NameOf(const Settings& settings, std::string_view option) {
  const std::string& name = settings.Text(option);
  if (IsReplicaName(name)) return name;
  return Fail(Blame::kCaller,
              "--{} '{}': letters, digits, '-', '_' and '.' are possible, at most {} of them",
              option, name, ReplicaMessage::kLongestName);
}

Result<NatsOptions> NatsOf(const Settings& settings, const NatsReplicas& spec) {
  NatsOptions nats;
  nats.user = spec.user;
  nats.password = spec.password;
  nats.token = spec.token;
  if (const std::string& user = settings.Text("nats-user"); !user.empty()) {
    nats.user = user;
    TRY(nats.password, SecretOf(settings, "nats-password-file"));
  }
  if (!settings.Text("nats-token-file").empty()) {
    TRY(nats.token, SecretOf(settings, "nats-token-file"));
  }
  nats.nkey_seed_file = settings.Text("nats-nkey-file");
  nats.credentials_file = settings.Text("nats-creds-file");
  nats.ca_file = settings.Text("nats-ca-file");
  nats.certificate_file = settings.Text("nats-cert-file");
  nats.key_file = settings.Text("nats-key-file");
  return nats;
}

Result<void> CheckNats(const Settings& settings, const NatsReplicas& spec) {
  size_t accounts = spec.user.empty() && spec.token.empty() ? 0 : 1;
  for (const std::string_view option : kNatsAccounts) {
    accounts += settings.Text(option).empty() ? 0 : 1;
  }
  if (accounts > 1) {
    return Fail(
        Blame::kCaller,
        "set one of --nats-user, --nats-token-file, --nats-nkey-file, --nats-creds-file and "
        "an account in --replicas");
  }
  if (settings.Text("nats-user").empty() != settings.Text("nats-password-file").empty()) {
    return Fail(Blame::kCaller, "--nats-user and --nats-password-file belong together");
  }
  const bool for_tls =
      !settings.Text("nats-ca-file").empty() || !settings.Text("nats-cert-file").empty();
  if (for_tls && !spec.tls) {
    return Fail(Blame::kCaller,
                "--nats-ca-file and --nats-cert-file are for TLS: set --replicas tls://HOST:PORT");
  }
  if (settings.Text("nats-cert-file").empty() != settings.Text("nats-key-file").empty()) {
    return Fail(Blame::kCaller, "--nats-cert-file and --nats-key-file belong together");
  }
  return {};
}

Result<void> CheckUrl(const std::string& url) {
  if (url.empty()) return {};
  // The others do not understand a longer one.
  if (url.size() > ReplicaPresence::kLongestText) {
    return Fail(Blame::kCaller, "--replica-url has {} bytes; at most {} are possible", url.size(),
                ReplicaPresence::kLongestText);
  }
  auto checked = PeerDirectory::CheckUrl(url);
  if (!checked) return std::unexpected(std::move(checked).error().In("replica-url"));
  return {};
}

Result<void> CheckUnset(const Settings& settings, std::span<const std::string_view> options,
                        std::string_view wanted) {
  for (const std::string_view option : options) {
    if (settings.Text(option).empty()) continue;
    return Fail(Blame::kCaller, "--{} has no effect without {}", option, wanted);
  }
  return {};
}

Result<void> CheckUnused(const Settings& settings) {
  TRY_VOID(CheckUnset(settings, kOfGroups, "--replicas"));
  TRY_VOID(CheckUnset(settings, kOfNats, "--replicas"));
  if (!settings.Flag("replica-open")) return {};
  return Fail(Blame::kCaller, "--replica-open has no effect without --replicas");
}

}  // namespace

Result<void> CheckReplicas(const Settings& settings) {
  const std::string& text = settings.Text("replicas");
  if (text.empty()) return CheckUnused(settings);
  auto parsed = ParseReplicaSpec(text);
  if (!parsed) return std::unexpected(std::move(parsed).error().In("--replicas"));
  const ReplicaSpec& spec = *parsed;
  TRY_VOID(NameOf(settings, "replica-group"));
  if (!settings.Text("replica-id").empty()) TRY_VOID(NameOf(settings, "replica-id"));
  TRY_VOID(CheckUrl(settings.Text("replica-url")));
  const bool key = !settings.Text("replica-key-file").empty();
  const bool open = settings.Flag("replica-open");
  if (key && open) {
    return Fail(Blame::kCaller,
                "--replica-key-file and --replica-open contradict each other: remove one");
  }
  if (!key && !open) {
    return Fail(Blame::kCaller,
                "--replicas needs a key that all routers of the group share: set "
                "--replica-key-file, or allow everybody who reaches them to steer requests with "
                "--replica-open");
  }
  // Requests are forwarded with their prompts and keys: only to those that have the group's key.
  if (open && !settings.Text("replica-url").empty()) {
    return Fail(Blame::kCaller,
                "--replica-url needs --replica-key-file: requests are not forwarded in a group "
                "without a key");
  }
  if (const auto* const nats = std::get_if<NatsReplicas>(&spec)) {
    constexpr std::string_view kOfMesh[] = {"replica-listen"};
    TRY_VOID(CheckUnset(settings, kOfMesh, "zmq:// in --replicas"));
    return CheckNats(settings, *nats);
  }
  TRY_VOID(CheckUnset(settings, kOfNats, "nats:// or tls:// in --replicas"));
  if (settings.Text("replica-listen").empty()) {
    return Fail(
        Blame::kCaller,
        "--replicas {} needs --replica-listen HOST:PORT, where the other routers connect to", text);
  }
  return {};
}

Result<std::optional<ReplicasOptions>> ReplicasOptionsOf(const Settings& settings) {
  TRY_VOID(CheckReplicas(settings));
  const std::string& text = settings.Text("replicas");
  if (text.empty()) return std::nullopt;
  ReplicasOptions options;
  TRY(options.spec, ParseReplicaSpec(text));
  options.group = settings.Text("replica-group");
  options.id = settings.Text("replica-id");
  if (options.id.empty()) options.id = IdOfHost(settings.Integer("port"));
  TRY(options.key, KeyOf(settings));
  options.timeout = settings.Time("replica-timeout");
  options.listen = settings.Text("replica-listen");
  options.kube.kubeconfig = settings.Text("kubeconfig");
  options.url = settings.Text("replica-url");
  options.models = settings.List("models");
  if (const auto* const nats = std::get_if<NatsReplicas>(&options.spec)) {
    TRY(options.nats, NatsOf(settings, *nats));
  }
  return options;
}

}  // namespace fathom
