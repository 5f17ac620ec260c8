// What do the name servers answer to a question for one type of record? c-ares, for one thread that
// polls.
//
//   channel->Query("engine.test", AF_INET, [](RecordAnswer answer) { ... });
//   channel->AddTo(polled);
//   poll(polled, channel->UntilTimeout());
//   channel->Process(polled);               // calls back
//
// Any number of questions are open at once, and none waits for another. c-ares resends what is
// lost, changes the server, ignores answers with a wrong id, and asks over TCP if an answer was
// truncated.
//
// Memory  At most kMaxAddresses of an answer are used.
// Ending  The destructor calls back for every open question, with kCancelled.
#pragma once

#include <ares.h>
#include <poll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "io/net/address.h"

namespace fathom {

enum class RecordStatus : uint8_t {
  kFound,
  kNoData,     // the name exists, without a record of this type
  kNoName,     // the name does not exist
  kTimeout,    // no server answered
  kFailed,     // the servers refused or failed
  kBadAnswer,  // the answer cannot be read
  kCancelled,
};

struct RecordAnswer {
  RecordStatus status = RecordStatus::kCancelled;
  std::vector<Address> addresses = {};  // with port 0
  Duration ttl{};                       // the smallest of the records
};

struct DnsChannelOptions {
  std::vector<Address> servers = {};             // instead of those in resolv_conf
  std::string resolv_conf = "/etc/resolv.conf";  // servers, search domains, options
};

class DnsChannel {
 public:
  static constexpr int kMaxAddresses = 1024;
  // Before a question is sent again, unless resolv.conf has `options timeout:`. c-ares doubles it
  // each time. A lost datagram must cost less than what connecting may take.
  static constexpr Duration kResendAfter = std::chrono::milliseconds(500);

  using Done = std::function<void(RecordAnswer)>;

  static Result<std::unique_ptr<DnsChannel>> Open(const DnsChannelOptions& options);
  ~DnsChannel();
  DnsChannel(const DnsChannel&) = delete;
  DnsChannel& operator=(const DnsChannel&) = delete;

  // `family`: AF_INET (A records) or AF_INET6 (AAAA). May call back at once.
  void Query(const std::string& name, int family, Done done);

  void AddTo(std::vector<pollfd>& polled) const;
  std::optional<Duration> UntilTimeout() const;
  void Process(std::span<const pollfd> polled);

  // From resolv.conf.
  const std::vector<std::string>& search() const { return search_; }
  size_t dots_of_complete_name() const { return ndots_; }  // `options ndots:`

 private:
  DnsChannel() = default;

  static void OnSocketState(void* self, ares_socket_t fd, int readable, int writable);
  void ReadSettings();

  ares_channel channel_ = nullptr;
  std::map<ares_socket_t, short> sockets_;  // what each is polled for
  std::vector<std::string> search_;
  size_t ndots_ = 1;
  bool default_timeout_ = false;
};

}  // namespace fathom
