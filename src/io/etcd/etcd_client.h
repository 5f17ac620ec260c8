// How do I ask this etcd, whichever of its members answers? Over its JSON gateway (/v3, etcd 3.4
// and later).
//
// Members   Tried in turn, beginning with the one that answered last. One that does not answer, or
//           has no leader, is passed over for this call; the next call begins at the one that
//           answered.
// Accounts  With a user, a token is fetched before the first call and again when it is refused.
//           Where etcd has no accounts enabled, calls go without one.
// Threads   One loop. One call at a time.
// Privacy   Neither the password nor a token is part of an error.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "io/etcd/etcd_address.h"
#include "io/etcd/etcd_message.h"
#include "io/http/fetch.h"
#include "io/net/resolver.h"
#include "io/net/task.h"

namespace fathom {

enum class EtcdCause : uint8_t {
  kUnreachable,      // no member answers, or none has a leader
  kUnauthenticated,  // user, password or token are refused
  kDenied,           // the user may not do this
  kCompacted,        // the revision is no longer stored
  kNoLease,
  kRefused,    // for another reason
  kBadAnswer,  // not what etcd sends
  kCancelled,
};

struct EtcdError : Error {
  EtcdCause cause = EtcdCause::kUnreachable;
  int detail = 0;  // gRPC's code or the NetCause; distinguishes errors of one cause
};

template <class T = void>
using EtcdResult = std::expected<T, EtcdError>;

struct EtcdLogin {
  std::string user;  // empty: no account
  std::string password;
};

struct EtcdClientOptions {
  std::string ca_file = {};  // of https members; empty: the system's certificates
  EtcdLogin login = {};
  Duration patience = std::chrono::seconds(5);  // for one member's answer
};

// Which keys a read wants.
struct EtcdQuery {
  std::string key;
  std::string range_end;  // empty: that key alone
  uint64_t limit = 0;     // 0: none
  uint64_t revision = 0;  // 0: the newest
  bool keys_only = false;
  bool newest_first = false;  // by the revision of the last change
  size_t max_answer = 8 << 20;
};

class EtcdClient {
 public:
  // Fails if the CA file cannot be read.
  static Result<std::unique_ptr<EtcdClient>> Create(Loop& loop, Resolver& resolver,
                                                    const EtcdAddress& address,
                                                    EtcdClientOptions options = {});

  // Reads are linearizable: a member that is cut off from the others does not answer them.
  Task<EtcdResult<EtcdRange>> Range(EtcdQuery query);
  Task<EtcdResult<EtcdHeader>> Put(std::string key, std::string value, uint64_t lease);
  // Stores the pair if the key does not exist; else nothing changes and the answer holds the pair
  // that is there.
  Task<EtcdResult<EtcdTransaction>> PutIfAbsent(std::string key, std::string value, uint64_t lease);
  // Deletes the key if it has this lease; else the answer holds the pair that is there, if any.
  Task<EtcdResult<EtcdTransaction>> DeleteIfLeased(std::string key, uint64_t lease);

  Task<EtcdResult<EtcdLease>> Grant(Duration ttl);
  // kNoLease once the lease has expired.
  Task<EtcdResult<EtcdLease>> KeepAlive(uint64_t lease);
  // Deletes the keys of the lease, too.
  Task<EtcdResult<EtcdHeader>> Revoke(uint64_t lease);

  // The call in progress fails soon, but not inside this call.
  void Cancel();

  // For the stream of a watch, which goes to one member.
  Loop& loop() { return loop_; }
  Resolver& resolver() { return resolver_; }
  Duration patience() const { return options_.patience; }
  size_t members() const { return members_.size(); }
  size_t member() const { return member_; }  // where the next call begins
  const Endpoint& endpoint() const { return *members_[member_].endpoint; }
  const std::string& token() const { return token_; }
  // The next call begins at another member.
  void MoveOn() { member_ = (member_ + 1) % members_.size(); }

 private:
  struct Member {
    std::shared_ptr<const Endpoint> endpoint;
    std::unique_ptr<Caller> caller;
  };

  EtcdClient(Loop& loop, Resolver& resolver, EtcdClientOptions options)
      : loop_(loop), resolver_(resolver), options_(std::move(options)) {}

  Task<EtcdResult<std::string>> Call(std::string path, std::string body, size_t max_answer);
  Task<EtcdResult<std::string>> CallMember(const std::string& path, const std::string& body,
                                           size_t max_answer);
  Task<EtcdResult<std::string>> Post(const std::string& path, const std::string& body,
                                     size_t max_answer);
  Task<EtcdResult<void>> Authenticate();

  Loop& loop_;
  Resolver& resolver_;
  const EtcdClientOptions options_;
  std::vector<Member> members_;
  size_t member_ = 0;
  std::string token_;
  bool no_accounts_ = false;  // etcd says that it has none
  bool cancelled_ = false;
};

// What an answer that is not 200 means.
EtcdError EtcdErrorOf(int status, std::string_view body);

}  // namespace fathom
