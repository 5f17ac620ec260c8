#include "io/net/resolver.h"

#include <optional>
#include <utility>

#include "io/net/host_name.h"
#include "io/net/lookup_thread.h"
#include "io/net/name_desk.h"

namespace fathom {
namespace {

// What needs no lookup.
std::optional<NameDesk::Answer> AnswerWithoutAsking(const std::string& host) {
  if (const auto numeric = Address::Numeric(host, 0)) return NameAnswer{.addresses = {*numeric}};
  if (!IsHostName(host)) {
    return NetFail(NetCause::kBadName,
                   "cannot resolve '{}': not the name of a host; a name has labels of 1 to 63 "
                   "letters, digits, - or _, separated by dots, at most 253 bytes in all",
                   host.substr(0, 100));
  }
  if (IsLocalhost(host)) {
    return NameAnswer{
        .addresses = {*Address::Numeric("127.0.0.1", 0), *Address::Numeric("::1", 0)}};
  }
  return std::nullopt;
}

NetResult<NameAnswer> WithPort(NameDesk::Answer answer, uint16_t port) {
  if (!answer) return answer;
  for (Address& address : answer->addresses) address = address.WithPort(port);
  return answer;
}

Task<NameDesk::Answer> Await(NameDesk& desk, Loop& loop, std::string host, NameDesk::Wants wants,
                             TimePoint deadline, Cancellation* cancellation) {
  if (cancellation != nullptr && cancellation->cancelled()) {
    co_return NetFail(NetCause::kCancelled, "cancelled");
  }
  NameDesk::Asker asker(loop, LowerHostName(host), wants, deadline);
  if (auto known = desk.Enter(asker)) co_return *std::move(known);
  WakeableWait& wait = asker.wait();
  const Cancellation::Scope scope(cancellation, wait);
  WakeCause cause = co_await wait;
  if (cancellation != nullptr && cancellation->cancelled()) cause = WakeCause::kCancelled;
  co_return desk.Leave(asker, cause);
}

}  // namespace

Result<std::vector<Address>> ParseNameServers(const std::vector<std::string>& texts) {
  constexpr uint16_t kPort = 53;
  std::vector<Address> servers;
  for (const std::string& text : texts) {
    std::optional<Address> server = Address::Numeric(text, kPort);
    if (const auto place = SplitHostPort(text); !server && place) {
      server = Address::Numeric(place->first, place->second);
    }
    if (!server || server->port() == 0) {
      return Fail(Blame::kCaller,
                  "'{}' is not the address of a name server; write IP or IP:PORT, e.g. 10.0.0.53 "
                  "or [fd00::53]:53",
                  text.substr(0, 100));
    }
    servers.push_back(*server);
  }
  if (servers.size() > Resolver::kMaxServers) {
    return Fail(Blame::kCaller, "{} name servers; at most {} are used", servers.size(),
                Resolver::kMaxServers);
  }
  return servers;
}

Resolver::Resolver(ResolverOptions options)
    : desk_(std::make_unique<NameDesk>(options.log)),
      thread_(std::make_unique<LookupThread>(
          *desk_, DnsChannelOptions{std::move(options.servers), std::move(options.resolv_conf)},
          std::move(options.hosts))) {}

Resolver::~Resolver() { Stop(); }

void Resolver::Stop() { thread_.reset(); }

Task<NetResult<std::vector<Address>>> Resolver::Resolve(Loop& loop, std::string host, uint16_t port,
                                                        TimePoint deadline,
                                                        Cancellation* cancellation) {
  std::optional<NameDesk::Answer> answer = AnswerWithoutAsking(host);
  if (!answer) {
    auto asking =
        Await(*desk_, loop, std::move(host), NameDesk::Wants::kUsable, deadline, cancellation);
    answer.emplace(co_await asking);
  }
  auto found = WithPort(*std::move(answer), port);
  if (!found) co_return std::unexpected(std::move(found).error());
  co_return std::move(found->addresses);
}

Task<NetResult<NameAnswer>> Resolver::Ask(Loop& loop, std::string host, uint16_t port) {
  std::optional<NameDesk::Answer> answer = AnswerWithoutAsking(host);
  if (!answer) {
    auto asking = Await(*desk_, loop, std::move(host), NameDesk::Wants::kComplete, kNever, nullptr);
    answer.emplace(co_await asking);
  }
  co_return WithPort(*std::move(answer), port);
}

}  // namespace fathom
