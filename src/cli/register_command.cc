// fathom register: holds the registration of the engine beside it in etcd.
#include <algorithm>
#include <cstdlib>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "cli/command.h"
#include "cli/registration.h"
#include "codec/json.h"
#include "codec/url.h"
#include "io/etcd/etcd_address.h"
#include "io/etcd/etcd_client.h"
#include "io/net/loop.h"
#include "io/net/resolver.h"
#include "io/net/signals.h"
#include "router/serve/etcd_access.h"
#include "router/sources/worker_entry.h"

namespace fathom {
namespace {

Result<EtcdAddress> WhereToRegister(const Settings& settings) {
  const std::string& text = settings.Text("etcd");
  if (text.empty()) return Fail(Blame::kCaller, "--etcd is missing; e.g. etcd://HOST:2379");
  TRY(EtcdAddress address, EtcdAddress::Parse(text));
  const std::string& prefix = settings.Text("prefix");
  if (prefix.empty() && address.prefix.empty()) {
    return Fail(Blame::kCaller, "--prefix is missing; e.g. --prefix fleet");
  }
  if (prefix.empty()) return address;
  TRY(std::string keys, EtcdAddress::KeysBelow(prefix));
  if (!address.prefix.empty() && address.prefix != keys) {
    return Fail(Blame::kCaller, "--prefix and the path of --etcd differ; remove one of them");
  }
  address.prefix = std::move(keys);
  return address;
}

Result<Url> EngineOf(const Settings& settings) {
  const std::string& text = settings.Text("url");
  if (text.empty()) {
    return Fail(Blame::kCaller,
                "--url is missing: the engine as routers reach it, "
                "http://HOST:PORT");
  }
  auto url = Url::Parse(text);
  if (!url) return std::unexpected(std::move(url).error().In("--url"));
  return url;
}

// The entry's own certificates: the router verifies the engine by the same.
std::string AuthoritiesIn(const std::string& entry) {
  const auto json = Json::Parse(entry);
  const Json* const file = json ? json->Find("ca_file") : nullptr;
  return file == nullptr || file->string() == nullptr ? "" : *file->string();
}

Result<RegistrationPlan> PlanOf(const Settings& settings, const std::string& prefix) {
  RegistrationPlan plan;
  TRY(plan.engine.url, EngineOf(settings));
  plan.key = RegistrationPlan::KeyOf(prefix, plan.engine.url);
  TRY(plan.value, RegistrationPlan::ValueOf(plan.engine.url, settings.Text("entry")));
  if (const auto entry = ReadWorkerEntry(plan.value); !entry) {
    return Fail(Blame::kCaller, "--entry: {}", entry.error().what);
  }
  plan.ttl = settings.Time("ttl");
  plan.health_path = settings.Text("health-check-path");
  if (!plan.health_path.starts_with('/')) {
    return Fail(Blame::kCaller, "--health-check-path must start with a slash");
  }
  plan.interval = settings.Time("health-check-interval");
  plan.timeout = settings.Time("health-check-timeout");
  plan.failures = static_cast<uint32_t>(settings.Integer("health-check-failures"));
  if (plan.engine.url.tls()) {
    TRY(plan.engine.tls, TlsClientContext::Create(AuthoritiesIn(plan.value)));
  }
  return plan;
}

int Keep(const EtcdAddress& address, EtcdClientOptions options, RegistrationPlan plan, Log& log) {
  Loop loop;
  Resolver resolver;
  auto client = EtcdClient::Create(loop, resolver, address, std::move(options));
  if (!client) {
    log.Error("The registration cannot start", {{"reason", client.error().what}});
    return kExitUsage;
  }
  Registration registration(loop, resolver, **client, std::move(plan), log);
  std::thread thread([&loop] { loop.Run(); });
  loop.Post([&] { registration.Start(); });
  while (WaitForSignal(std::chrono::hours(1)) == 0) {
  }
  log.Info("Withdrawing the worker");
  std::promise<bool> done;
  loop.Post([&] { registration.Withdraw([&](bool confirmed) { done.set_value(confirmed); }); });
  done.get_future().wait();
  loop.Stop();
  thread.join();
  log.End(std::chrono::seconds(1));
  // Coroutines that still wait on the loop are not destroyed.
  std::_Exit(kExitFine);
}

}  // namespace

int RunRegister(const Settings& settings, const Environment& environment, Log& log) {
  const auto refuse = [&](const Error& error) {
    log.Error("The registration cannot start", {{"reason", error.what}});
    return kExitUsage;
  };
  auto address = WhereToRegister(settings);
  if (!address) return refuse(address.error());
  auto options = EtcdOptionsOf(settings, environment);
  if (!options) return refuse(options.error());
  auto plan = PlanOf(settings, address->prefix);
  if (!plan) return refuse(plan.error());
  // An answer that comes after a third of the lease's life is too late to renew it.
  options->patience = std::min(options->patience, plan->ttl / 3);
  return Keep(*address, *std::move(options), *std::move(plan), log);
}

}  // namespace fathom
