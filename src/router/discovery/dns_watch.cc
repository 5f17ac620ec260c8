#include "router/discovery/dns_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"
#include "io/net/host_name.h"

namespace fathom {
namespace {

constexpr std::string_view kPrefix = "dns+";

// The URL for each address, with the name as its host.
Result<Url> ParseName(std::string_view text) {
  if (!text.starts_with(kPrefix)) {
    return Fail(Blame::kCaller,
                "a DNS name whose addresses are workers must be written dns+http://name:port or "
                "dns+https://name:port");
  }
  auto url = Url::Parse(text.substr(kPrefix.size()));
  if (!url) return std::unexpected(std::move(url).error().In("after dns+"));
  if (Address::Numeric(url->host, url->port)) {
    return Fail(Blame::kCaller, "dns+{0}: an address needs no lookup; write {0}", url->ToString());
  }
  if (!IsHostName(url->host)) {
    return Fail(Blame::kCaller,
                "dns+{}: not a DNS name; a name has labels of 1 to 63 bytes separated by dots, "
                "at most 253 bytes in all, e.g. dns+http://engines.prod.svc:8000",
                url->ToString());
  }
  return url;
}

// The port of an event endpoint with a wildcard host (tcp://*:5557): each address has its own.
Result<std::optional<uint16_t>> EventPort(const std::optional<std::string>& endpoint,
                                          std::string_view key, std::string_view name) {
  constexpr std::string_view kTcp = "tcp://";
  constexpr std::string_view kWildcards[] = {"*", "0.0.0.0", "::"};
  if (!endpoint) return std::nullopt;
  if (endpoint->starts_with(kTcp)) {
    const auto at = SplitHostPort(std::string_view(*endpoint).substr(kTcp.size()));
    if (at && (at->first == name || std::ranges::count(kWildcards, at->first) > 0)) {
      return at->second;
    }
  }
  return Fail(Blame::kCaller,
              "{} '{}' cannot apply to every address; write tcp://*:PORT for this port on each "
              "of them",
              key, endpoint->substr(0, 100));
}

std::string TcpAt(const std::string& address, uint16_t port) {
  return fmt::format("tcp://{}", Address::Numeric(address, port)->ToString());
}

// Only one address family, because a machine with an address in each is one worker: `family` while
// the name has such addresses, else the family of the first address.
std::set<std::string> HostsOf(const std::vector<Address>& found, int& family) {
  const auto familiar = [&](const Address& address) { return address.family() == family; };
  if (std::ranges::none_of(found, familiar)) family = found.front().family();
  std::set<std::string> hosts;
  for (const Address& address : found) {
    if (familiar(address)) hosts.insert(SplitHostPort(address.ToString())->first);
  }
  return hosts;
}

}  // namespace

struct DnsWatch::Name {
  WorkerRequest request;  // with the normalized spelling of its URL
  std::string host;       // for lookups: only the resolver gets a trailing dot
  WorkerPlan plan;
  std::optional<uint16_t> events_port;
  std::optional<uint16_t> replay_port;

  // Guarded by mutex_.
  int family = 0;
  std::set<WorkerId> workers;    // that joined because of this name
  std::set<WorkerId> taken_out;  // removed by operators
  std::string problem;
  bool said_many = false;  // logged: more addresses than kMaxAddresses
  bool said_full = false;  // logged: the fleet is full
  bool forgotten = false;
};

bool DnsWatch::IsName(std::string_view url) {
  return url.starts_with(kPrefix) || url.starts_with("dns:");
}

Result<void> DnsWatch::Add(const WorkerRequest& request) {
  if (IsName(request.url)) {
    TRY_VOID(Watch(request));
  } else {
    TRY_VOID(Join(request));
  }
  return {};
}

Result<DnsWatch::NameState> DnsWatch::Watch(const WorkerRequest& request) {
  TRY(Url url, ParseName(request.url));
  auto name = std::make_shared<Name>();
  name->request = request;
  name->request.url = fmt::format("dns+{}", url.ToString());
  name->request.from = {};  // who entered it is no setting
  name->host = url.host;
  if (url.host.ends_with('.')) url.host.pop_back();
  TRY(name->events_port, EventPort(request.kv_events, "kv_events", url.host));
  TRY(name->replay_port, EventPort(request.kv_events_replay, "kv_events_replay", url.host));
  WorkerRequest plain = request;
  plain.url = url.ToString();
  TRY(name->plan, directory_.Plan(plain));

  const std::lock_guard lock(mutex_);
  const WorkerId id = WorkerId::OfUrl(name->request.url);
  if (const auto known = names_.find(id); known != names_.end()) {
    if (known->second->request != name->request) {
      return Fail(Blame::kCaller,
                  "{} is already watched, with different settings; remove it first (DELETE "
                  "/workers/{})",
                  name->request.url, id.value());
    }
    known->second->taken_out.clear();
    return StateOf(*known->second);
  }
  if (watches_ >= kMaxNames) {
    return Fail(Blame::kOverload, "{} names are already watched, which is the limit", kMaxNames);
  }
  ++watches_;
  names_.emplace(id, name);
  pending_.fetch_add(1, std::memory_order_relaxed);
  loop_.Post([this, name] { Spawn(WatchForever(name)); });
  return StateOf(*name);
}

Result<std::shared_ptr<Worker>> DnsWatch::Join(const WorkerRequest& request) {
  TRY(auto worker, directory_.Join(request));
  const WorkerId id = worker->id();
  auto endpoint = directory_.Find(id);
  if (endpoint == nullptr || Address::Numeric(endpoint->url.host, 0)) return worker;
  loop_.Post([this, id, endpoint = std::move(endpoint)]() mutable {
    if (plain_watches_ < Fleet::kMaxWorkers) Spawn(WatchPlain(id, std::move(endpoint)));
  });
  return worker;
}

bool DnsWatch::Leave(WorkerId id) {
  const std::lock_guard lock(mutex_);
  if (const auto found = names_.find(id); found != names_.end()) {
    Name& name = *found->second;
    name.forgotten = true;
    for (const WorkerId worker : name.workers) directory_.Leave(worker);
    log_.Info("Worker name removed", {{"name_id", id.value()}, {"url", name.request.url}});
    names_.erase(found);
    return true;
  }
  if (!directory_.Leave(id)) return false;
  // Several names may resolve to its address. The other names drop the id at their next lookup.
  for (const auto& [_, name] : names_) {
    name->workers.erase(id);
    name->taken_out.insert(id);
  }
  return true;
}

std::vector<DnsWatch::NameState> DnsWatch::Names() const {
  std::vector<NameState> states;
  const std::lock_guard lock(mutex_);
  states.reserve(names_.size());
  for (const auto& [_, name] : names_) states.push_back(StateOf(*name));
  return states;
}

DnsWatch::NameState DnsWatch::StateOf(const Name& name) {
  return {.id = WorkerId::OfUrl(name.request.url),
          .url = name.request.url,
          .workers = {name.workers.begin(), name.workers.end()},
          .taken_out = {name.taken_out.begin(), name.taken_out.end()},
          .problem = name.problem};
}

Task<void> DnsWatch::WatchForever(std::shared_ptr<Name> name) {
  const uint16_t port = name->plan.endpoint.url.port;
  for (bool first = true;; first = false) {
    auto asking = resolve_(name->host, port);
    const Addresses found = co_await asking;
    const bool wanted = Apply(*name, found);
    if (first) pending_.fetch_sub(1, std::memory_order_release);
    if (!wanted) break;
    co_await loop_.Sleep(options_.interval);
  }
  const std::lock_guard lock(mutex_);
  --watches_;
}

bool DnsWatch::Apply(Name& name, const Addresses& found) {
  const std::lock_guard lock(mutex_);
  if (name.forgotten) return false;
  if (!found) {
    NoteProblem(name, found.error().what);
  } else if (found->addresses.empty()) {
    NoteProblem(name, "it has no addresses");
  } else if (WouldChangeFamily(name, *found)) {
    NoteProblem(name, "the name servers answered for the other address family only");
  } else {
    Update(name, found->addresses);
  }
  return true;
}

// Half an answer must not replace all workers by their addresses of the other family.
bool DnsWatch::WouldChangeFamily(const Name& name, const NameAnswer& found) const {
  const auto familiar = [&](const Address& address) { return address.family() == name.family; };
  return !found.complete && name.family != 0 && std::ranges::none_of(found.addresses, familiar);
}

void DnsWatch::Update(Name& name, const std::vector<Address>& found) {
  if (!std::exchange(name.problem, "").empty()) {
    log_.Info("DNS lookup of a worker name works again",
              {{"url", name.request.url}, {"addresses", found.size()}});
  }
  std::map<WorkerId, std::string> wanted;
  Url url = name.plan.endpoint.url;
  for (const std::string& host : HostsOf(found, name.family)) {
    url.host = host;
    wanted.emplace(WorkerId::OfUrl(url.ToString()), host);
  }
  const auto vanished = [&](WorkerId id) { return !wanted.contains(id); };
  const std::string cause = fmt::format("DNS name {} no longer has this address", name.request.url);
  for (const WorkerId id : name.workers) {
    if (vanished(id)) directory_.Leave(id, cause);
  }
  std::erase_if(name.workers, vanished);
  std::erase_if(name.taken_out, vanished);
  for (const auto& [id, host] : wanted) {
    if (name.workers.size() >= kMaxAddresses) break;
    if (!name.workers.contains(id) && !name.taken_out.contains(id)) JoinAt(name, id, host);
  }
  if (wanted.size() <= kMaxAddresses || std::exchange(name.said_many, true)) return;
  log_.Warn("A worker name has more addresses than the limit; the rest are not used",
            {{"url", name.request.url}, {"addresses", wanted.size()}, {"used", kMaxAddresses}});
}

void DnsWatch::JoinAt(Name& name, WorkerId id, const std::string& address) {
  WorkerPlan plan = name.plan.At(address);
  if (name.events_port) plan.spec.kv_events = TcpAt(address, *name.events_port);
  if (name.replay_port) plan.spec.kv_events_replay = TcpAt(address, *name.replay_port);
  const auto joined = directory_.Join(std::move(plan));
  if (joined) {
    name.workers.insert(id);
    return;
  }
  // A worker that is already in the fleet was listed by its own URL or by another name: no problem.
  if (joined.error().blame != Blame::kOverload || std::exchange(name.said_full, true)) return;
  log_.Warn("Some addresses of a worker name were not added as workers",
            {{"url", name.request.url}, {"reason", joined.error().what}});
}

void DnsWatch::NoteProblem(Name& name, const std::string& problem) {
  const bool known = !std::exchange(name.problem, problem).empty();
  if (known) return;
  log_.Warn("DNS lookup failed for a worker name; keeping the current workers",
            {{"url", name.request.url}, {"workers", name.workers.size()}, {"reason", problem}});
}

Task<void> DnsWatch::WatchPlain(WorkerId id, std::shared_ptr<const Endpoint> endpoint) {
  ++plain_watches_;
  const Url& url = endpoint->url;
  size_t hosts = 0;
  while (directory_.Find(id) == endpoint) {
    auto asking = resolve_(url.host, url.port);
    const Addresses found = co_await asking;
    int family = 0;
    hosts = found && !found->addresses.empty() ? HostsOf(found->addresses, family).size() : 0;
    if (hosts > 1) break;
    co_await loop_.Sleep(options_.plain_interval);
  }
  --plain_watches_;
  if (hosts <= 1) co_return;
  log_.Warn(
      "A worker's host name has several addresses: each request reaches one of them, so its "
      "cache cannot be tracked",
      {{"worker_id", id.value()},
       {"url", url.ToString()},
       {"addresses", hosts},
       {"fix", fmt::format("write dns+{} to make each address a worker (on Kubernetes: the name of "
                           "a headless Service)",
                           url.ToString())},
       {"docs", log_.docs().To("runbooks/service-hides-pods.md")}});
}

}  // namespace fathom
