// Is the engine beside us healthy, and does etcd say so?
//
// Checks the engine periodically. While it is healthy, its key is in etcd and hangs on a lease that
// is renewed three times in its life; an engine that fails `failures` checks in a row is withdrawn,
// and returns with its first good check. If etcd is away nothing is done to the engine: the key is
// stored again once etcd answers.
//
// Two of    The later one takes the key over, because after a crash the former lease is still
// one URL   there. One whose key was taken over leaves it alone, and stores its own again when the
//           key is gone.
// Threads   One loop; Start() and Withdraw() on it.
#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "io/etcd/etcd_client.h"
#include "io/http/client_connection.h"
#include "io/net/loop.h"
#include "io/net/task.h"
#include "io/net/wakeable_wait.h"

namespace fathom {

struct RegistrationPlan {
  std::string key;
  std::string value;  // a worker entry as JSON
  Duration ttl = std::chrono::seconds(10);
  Endpoint engine;
  std::string health_path = "/health";
  Duration interval = std::chrono::seconds(2);
  Duration timeout = std::chrono::seconds(2);
  uint32_t failures = 2;

  // The key's last part is the URL, percent-encoded. `entry` may be empty; a URL in it must be
  // the same.
  static Result<std::string> ValueOf(const Url& url, std::string_view entry);
  static std::string KeyOf(std::string_view prefix, const Url& url);
};

class Registration {
 public:
  Registration(Loop& loop, Resolver& resolver, EtcdClient& etcd, RegistrationPlan plan, Log& log);
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  void Start();
  // Removes the key. Calls `done` once etcd has confirmed that, or, if it does not, after the
  // lease's life or 30 s; then with false.
  void Withdraw(std::function<void(bool confirmed)> done);

 private:
  Task<void> CheckForever();
  Task<Result<void>> Check();
  Task<void> LogModels();
  void NoteCheck(const Result<void>& checked);

  Task<void> KeepForever();
  // The key is in etcd afterwards, with a lease that lives.
  Task<EtcdResult<void>> Renew();
  Task<EtcdResult<void>> Claim();
  Task<EtcdResult<void>> TakeOver(const EtcdPair& found);
  // The key is not in etcd afterwards, unless another registration has it.
  Task<EtcdResult<void>> Revoke();
  Task<void> WithdrawInTime();
  // Until then, or until something has changed.
  Task<void> Wait(Duration duration);
  void Wake();
  Duration NextPause();
  void NoteEtcd(const EtcdResult<void>& result);

  Loop& loop_;
  Resolver& resolver_;
  EtcdClient& etcd_;
  const RegistrationPlan plan_;
  Log& log_;
  Random random_;

  bool healthy_ = false;
  bool said_unhealthy_ = false;
  uint32_t failed_checks_ = 0;  // in a row

  uint64_t lease_ = 0;  // 0: none
  uint64_t former_lease_ = 0;
  bool registered_ = false;  // etcd has confirmed the key, with our lease
  bool had_key_ = false;     // since this process started
  bool said_taken_ = false;
  bool etcd_away_ = false;
  uint32_t failed_calls_ = 0;  // in a row

  std::function<void(bool)> done_;  // set: withdrawing
  WakeableWait* wait_ = nullptr;
  bool changed_ = false;  // while nobody waited
};

}  // namespace fathom
