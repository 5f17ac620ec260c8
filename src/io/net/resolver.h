// Which addresses does this name have?
//
// /etc/hosts first, then the name servers of /etc/resolv.conf; both files are read again when they
// change. IP addresses, localhost and texts that cannot be names are answered on the loop itself.
//
// Threads    Resolve() and Ask() may be called on any loop and resume there. One thread looks all
//            names up (LookupThread); no lookup waits for another one, and askers of one name share
//            one lookup (NameDesk).
// Memory     Bounded, in names and in bytes (NameCache, NameDesk).
// Staleness  Answers are kept for their TTL, within bounds. An expired answer is used while the new
//            one is on its way and while no name server answers, for at most an hour; that is
//            logged once per name.
// Ending     Stop() does not wait for a name server.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "io/net/address.h"
#include "io/net/cancellation.h"
#include "io/net/loop.h"
#include "io/net/name_lookup.h"
#include "io/net/net_error.h"
#include "io/net/task.h"

namespace fathom {

class LookupThread;
class NameDesk;

struct ResolverOptions {
  std::vector<Address> servers = {};             // instead of the name servers in resolv_conf
  std::string resolv_conf = "/etc/resolv.conf";  // name servers, search domains, options
  std::string hosts = "/etc/hosts";
  Log* log = nullptr;  // outlives the resolver
};

// "10.0.0.53", "10.0.0.53:5353" or "[fd00::53]:53", at most kMaxServers of them.
Result<std::vector<Address>> ParseNameServers(const std::vector<std::string>& texts);

class Resolver {
 public:
  static constexpr size_t kMaxServers = 8;

  Resolver() : Resolver(ResolverOptions{}) {}
  explicit Resolver(ResolverOptions options);
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // To connect to; the preferred address first. After the deadline: kNameTimeout. Without one it
  // ends within NameLookup::kPatience.
  Task<NetResult<std::vector<Address>>> Resolve(Loop& loop, std::string host, uint16_t port,
                                                TimePoint deadline = kNever,
                                                Cancellation* cancellation = nullptr);
  // What the name has now. Bypasses the cache: if the lookup fails, the result is an error even
  // when an old answer is cached. Ends within NameLookup::kPatience.
  Task<NetResult<NameAnswer>> Ask(Loop& loop, std::string host, uint16_t port);

  // No question is answered afterwards. Call it before the loops that have asked are destroyed.
  void Stop();

 private:
  const std::unique_ptr<NameDesk> desk_;
  std::unique_ptr<LookupThread> thread_;
};

}  // namespace fathom
