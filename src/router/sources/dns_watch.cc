#include "router/sources/dns_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"
#include "io/net/host_name.h"
#include "router/sources/event_template.h"

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
  Url url;                // of its workers, with the name as host
  std::optional<EventTemplate> events;
  std::optional<EventTemplate> replay;

  // Guarded by mutex_.
  std::unique_ptr<Muster::Source> source;  // null: forgotten
  int family = 0;
  std::string problem;
  bool said_many = false;  // logged: more addresses than kMaxAddresses
};

bool DnsWatch::IsName(std::string_view url) {
  return url.starts_with(kPrefix) || url.starts_with("dns:");
}

Result<DnsWatch::NameState> DnsWatch::Watch(const WorkerRequest& request) {
  TRY(Url url, ParseName(request.url));
  auto name = std::make_shared<Name>();
  name->request = request;
  name->request.url = fmt::format("dns+{}", url.ToString());
  name->host = url.host;
  if (url.host.ends_with('.')) url.host.pop_back();
  if (request.kv_events) {
    TRY(name->events, EventTemplate::Parse(*request.kv_events, "kv_events", url.host));
    TRY_VOID(name->events->At(url.host, url.port));
  }
  if (request.kv_events_replay) {
    TRY(name->replay,
        EventTemplate::Parse(*request.kv_events_replay, "kv_events_replay", url.host));
    TRY_VOID(name->replay->At(url.host, url.port));
  }
  name->url = url;
  WorkerRequest plain = request;
  plain.url = url.ToString();
  plain.kv_events.reset();
  plain.kv_events_replay.reset();
  TRY_VOID(directory_.Plan(plain));

  const std::lock_guard lock(mutex_);
  const WorkerId id = WorkerId::OfUrl(name->request.url);
  if (const auto known = names_.find(id); known != names_.end()) {
    WorkerRequest same = name->request;
    same.from = known->second->request.from;  // who entered it is no setting
    if (known->second->request != same) {
      return Fail(Blame::kCaller,
                  "{} is already watched, with different settings; remove it first (DELETE "
                  "/workers/{})",
                  name->request.url, id.value());
    }
    for (const WorkerId worker : known->second->source->Workers()) muster_.PutBack(worker);
    return StateOf(*known->second);
  }
  if (watches_ >= kMaxNames) {
    return Fail(Blame::kOverload, "{} names are already watched, which is the limit", kMaxNames);
  }
  ++watches_;
  name->source = muster_.Open(name->request.url, Muster::Rank::kFound);
  names_.emplace(id, name);
  loop_.Post([this, name] { Spawn(WatchForever(name)); });
  return StateOf(*name);
}

bool DnsWatch::Leave(WorkerId id) {
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(id);
  if (found == names_.end()) return false;
  found->second->source = nullptr;
  log_.Info("Worker name removed", {{"name_id", id.value()}, {"url", found->second->request.url}});
  names_.erase(found);
  return true;
}

std::vector<DnsWatch::NameState> DnsWatch::Names() const {
  std::vector<NameState> states;
  const std::lock_guard lock(mutex_);
  states.reserve(names_.size());
  for (const auto& [_, name] : names_) states.push_back(StateOf(*name));
  return states;
}

DnsWatch::NameState DnsWatch::StateOf(const Name& name) const {
  NameState state{.id = WorkerId::OfUrl(name.request.url),
                  .url = name.request.url,
                  .workers = {},
                  .taken_out = {},
                  .problem = name.problem};
  for (const WorkerId id : name.source->Workers()) {
    (muster_.IsTakenOut(id) ? state.taken_out : state.workers).push_back(id);
  }
  return state;
}

Task<void> DnsWatch::WatchForever(std::shared_ptr<Name> name) {
  for (;;) {
    auto asking = resolve_(name->host, name->url.port);
    const Addresses found = co_await asking;
    if (!Apply(*name, found)) break;
    co_await loop_.Sleep(options_.interval);
  }
  const std::lock_guard lock(mutex_);
  --watches_;
}

bool DnsWatch::Apply(Name& name, const Addresses& found) {
  const std::lock_guard lock(mutex_);
  if (name.source == nullptr) return false;
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
  name.problem.clear();
  std::map<WorkerId, std::string> wanted;
  Url url = name.url;
  for (const std::string& host : HostsOf(found, name.family)) {
    url.host = host;
    wanted.emplace(WorkerId::OfUrl(url.ToString()), host);
  }
  const std::string cause = fmt::format("DNS name {} no longer has this address", name.request.url);
  std::set<WorkerId> known;
  for (const WorkerId id : name.source->Workers()) {
    if (wanted.contains(id)) {
      known.insert(id);
    } else {
      name.source->Drop(id, cause);
    }
  }
  size_t used = known.size();
  for (const auto& [id, host] : wanted) {
    if (known.contains(id)) continue;
    if (used >= kMaxAddresses) break;
    const auto joined = JoinAt(name, host);
    if (joined) {
      ++used;
    } else {
      NoteProblem(name, joined.error().what);
    }
  }
  if (name.problem.empty()) name.source->Ok();
  if (wanted.size() <= kMaxAddresses || std::exchange(name.said_many, true)) return;
  log_.Warn("A worker name has more addresses than the limit; the rest are not used",
            {{"url", name.request.url}, {"addresses", wanted.size()}, {"used", kMaxAddresses}});
}

Result<void> DnsWatch::JoinAt(Name& name, const std::string& address) {
  Claim claim{.entry = name.request, .because = {}, .place = {}};
  Url url = name.url;
  claim.entry.host_name = std::exchange(url.host, address);
  claim.entry.url = url.ToString();
  if (name.events) claim.entry.kv_events = name.events->At(address, url.port).value();
  if (name.replay) claim.entry.kv_events_replay = name.replay->At(address, url.port).value();
  TRY_VOID(name.source->Put(std::move(claim)));
  return {};
}

void DnsWatch::NoteProblem(Name& name, const std::string& problem) {
  name.problem = problem;
  name.source->Stale(problem);
}

void DnsWatch::WatchPlain(WorkerId id) {
  auto endpoint = directory_.Find(id);
  if (endpoint == nullptr || Address::Numeric(endpoint->url.host, 0)) return;
  loop_.Post([this, id, endpoint = std::move(endpoint)]() mutable {
    if (plain_watches_ < Fleet::kMaxWorkers) Spawn(WatchPlain(id, std::move(endpoint)));
  });
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
