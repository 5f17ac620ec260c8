#include "io/net/dns_channel.h"

#include <arpa/nameser.h>
#include <netinet/in.h>
#include <sys/time.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/check.h"

namespace fathom {
namespace {

constexpr int kTries = 4;
constexpr int kDatagram = 1232;  // bytes; what passes every path without fragments

void InitLibrary() {
  static std::once_flag once;
  std::call_once(once, [] { CHECK(ares_library_init(ARES_LIB_INIT_ALL) == ARES_SUCCESS); });
}

RecordStatus StatusOf(int status) {
  switch (status) {
    case ARES_SUCCESS:
      return RecordStatus::kFound;
    case ARES_ENODATA:
      return RecordStatus::kNoData;
    case ARES_ENOTFOUND:
      return RecordStatus::kNoName;
    case ARES_ETIMEOUT:
      return RecordStatus::kTimeout;
    case ARES_EBADRESP:
      return RecordStatus::kBadAnswer;
    case ARES_ECANCELLED:
    case ARES_EDESTRUCTION:
      return RecordStatus::kCancelled;
    default:
      return RecordStatus::kFailed;
  }
}

Address AddressOf(const in_addr& ip) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr = ip;
  return Address::Of(reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}

Address AddressOf(const ares_in6_addr& ip) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  std::memcpy(&address.sin6_addr, &ip, sizeof(address.sin6_addr));
  return Address::Of(reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}

const in_addr& IpOf(const ares_addrttl& record) { return record.ipaddr; }
const ares_in6_addr& IpOf(const ares_addr6ttl& record) { return record.ip6addr; }

int ParseInto(std::span<const unsigned char> text, ares_addrttl* records, int* count) {
  return ares_parse_a_reply(text.data(), static_cast<int>(text.size()), nullptr, records, count);
}

int ParseInto(std::span<const unsigned char> text, ares_addr6ttl* records, int* count) {
  return ares_parse_aaaa_reply(text.data(), static_cast<int>(text.size()), nullptr, records, count);
}

template <class Record>
RecordAnswer Parse(std::span<const unsigned char> text) {
  std::vector<Record> records(DnsChannel::kMaxAddresses);
  int count = DnsChannel::kMaxAddresses;
  RecordAnswer answer{StatusOf(ParseInto(text, records.data(), &count))};
  if (answer.status != RecordStatus::kFound) return answer;
  if (count <= 0) return {RecordStatus::kNoData};
  records.resize(static_cast<size_t>(count));
  int ttl = records.front().ttl;
  for (const Record& record : records) {
    answer.addresses.push_back(AddressOf(IpOf(record)));
    ttl = std::min(ttl, record.ttl);
  }
  answer.ttl = std::chrono::seconds(std::max(ttl, 0));
  return answer;
}

// What c-ares passes to the callback.
struct Waiting {
  int family;
  DnsChannel::Done done;
};

void OnAnswer(void* argument, int status, int /*timeouts*/, unsigned char* text, int size) {
  const std::unique_ptr<Waiting> waiting(static_cast<Waiting*>(argument));
  RecordAnswer answer{StatusOf(status)};
  if (status == ARES_SUCCESS) {
    const std::span<const unsigned char> bytes(text, static_cast<size_t>(size));
    answer = waiting->family == AF_INET ? Parse<ares_addrttl>(bytes) : Parse<ares_addr6ttl>(bytes);
  }
  waiting->done(std::move(answer));
}

std::string ListOf(const std::vector<Address>& servers) {
  std::string list;
  for (const Address& server : servers) list += (list.empty() ? "" : ",") + server.ToString();
  return list;
}

}  // namespace

Result<std::unique_ptr<DnsChannel>> DnsChannel::Open(const DnsChannelOptions& options) {
  InitLibrary();
  std::string path = options.resolv_conf;
  std::string lookups = "b";  // name servers alone: the hosts file is read elsewhere
  // The second time only if resolv.conf has no timeout of its own.
  for (const bool impatient : {false, true}) {
    std::unique_ptr<DnsChannel> channel(new DnsChannel);
    ares_options o{};
    o.flags = ARES_FLAG_EDNS;
    o.ednspsz = kDatagram;
    o.lookups = lookups.data();
    o.resolvconf_path = path.data();
    o.sock_state_cb = &OnSocketState;
    o.sock_state_cb_data = channel.get();
    o.timeout = static_cast<int>(kResendAfter / std::chrono::milliseconds(1));
    o.tries = kTries;
    int mask = ARES_OPT_FLAGS | ARES_OPT_EDNSPSZ | ARES_OPT_LOOKUPS | ARES_OPT_RESOLVCONF |
               ARES_OPT_SOCK_STATE_CB;
    if (impatient) mask |= ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES;
    const int status = ares_init_options(&channel->channel_, &o, mask);
    if (status != ARES_SUCCESS) {
      return Fail(Blame::kCaller, "{}: {}", path, ares_strerror(status));
    }
    channel->ReadSettings();
    if (!impatient && channel->default_timeout_) continue;
    if (!options.servers.empty()) {
      const std::string servers = ListOf(options.servers);
      CHECK(ares_set_servers_ports_csv(channel->channel_, servers.c_str()) == ARES_SUCCESS);
    }
    return channel;
  }
  return Fail(Blame::kCaller, "{}: no channel", path);  // not reached
}

DnsChannel::~DnsChannel() {
  if (channel_ != nullptr) ares_destroy(channel_);
}

void DnsChannel::ReadSettings() {
  constexpr int kLibrarysTimeout = 5000;  // milliseconds, if resolv.conf has none
  ares_options o{};
  int mask = 0;
  if (ares_save_options(channel_, &o, &mask) == ARES_SUCCESS) {
    ndots_ = static_cast<size_t>(std::max(o.ndots, 0));
    default_timeout_ = o.timeout == kLibrarysTimeout;
    for (int i = 0; i < o.ndomains; ++i) search_.emplace_back(o.domains[i]);
  }
  ares_destroy_options(&o);
}

void DnsChannel::Query(const std::string& name, int family, Done done) {
  auto waiting = std::make_unique<Waiting>(Waiting{family, std::move(done)});
  const int type = family == AF_INET ? ns_t_a : ns_t_aaaa;
  ares_query(channel_, name.c_str(), ns_c_in, type, &OnAnswer, waiting.release());
}

void DnsChannel::OnSocketState(void* self, ares_socket_t fd, int readable, int writable) {
  auto& sockets = static_cast<DnsChannel*>(self)->sockets_;
  const int events = (readable ? POLLIN : 0) | (writable ? POLLOUT : 0);
  if (events == 0) {
    sockets.erase(fd);
  } else {
    sockets[fd] = static_cast<short>(events);
  }
}

void DnsChannel::AddTo(std::vector<pollfd>& polled) const {
  for (const auto& [fd, events] : sockets_) polled.push_back({fd, events, 0});
}

std::optional<Duration> DnsChannel::UntilTimeout() const {
  timeval time{};
  if (ares_timeout(channel_, nullptr, &time) == nullptr) return std::nullopt;
  return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
}

void DnsChannel::Process(std::span<const pollfd> polled) {
  for (const pollfd& socket : polled) {
    // A callback before this may have closed it.
    if (socket.revents == 0 || !sockets_.contains(socket.fd)) continue;
    const bool read = (socket.revents & (POLLIN | POLLERR | POLLHUP)) != 0;
    const bool write = (socket.revents & POLLOUT) != 0;
    ares_process_fd(channel_, read ? socket.fd : ARES_SOCKET_BAD,
                    write ? socket.fd : ARES_SOCKET_BAD);
  }
  ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);  // what has timed out
}

}  // namespace fathom
