// Looks names up for all loops: the thread behind a Resolver.
//
// One thread is enough, because it never waits for one name server alone: it polls the sockets of
// all open questions. Names that the hosts file has are answered from it. The hosts file and
// resolv.conf are read again when they have changed; open questions are then asked anew.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <unordered_map>

#include "io/net/dns_channel.h"
#include "io/net/hosts_file.h"
#include "io/net/name_desk.h"
#include "io/net/name_lookup.h"
#include "io/net/watched_file.h"

namespace fathom {

class LookupThread {
 public:
  static constexpr size_t kMaxResolvConf = size_t{64} << 10;

  LookupThread(NameDesk& desk, DnsChannelOptions dns, std::string hosts_file);
  // Does not wait for name servers.
  ~LookupThread();
  LookupThread(const LookupThread&) = delete;
  LookupThread& operator=(const LookupThread&) = delete;

 private:
  void Run();
  void RefreshFiles();
  void OpenChannel();
  void Begin(const std::string& name);
  void Ask(const std::string& name, NameLookup& lookup);
  void Poll();
  int PollMilliseconds() const;
  void Deliver();

  NameDesk& desk_;
  const DnsChannelOptions dns_;
  HostsFile hosts_;
  WatchedFile resolv_conf_;  // c-ares reads it by itself; its text shows when it has changed
  std::unique_ptr<DnsChannel> channel_;
  std::string channel_problem_;  // why there is no channel
  std::unordered_map<std::string, std::shared_ptr<NameLookup>> lookups_;
  std::thread thread_;
};

}  // namespace fathom
