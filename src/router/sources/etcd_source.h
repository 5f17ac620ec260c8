// Which workers are registered in etcd? Each key below the prefix of etcd://HOST:2379/PREFIX names
// one: a worker entry as JSON, as in POST /workers, or its URL, as a JSON string or as it is.
//
// A value that is not understood is reported once for each reason, without the value, and the
// worker that the key named before stays. Keys with the same URL are one worker, with the settings
// of the first of them in the order of their names, until all are gone. What is not understood, and
// a prefix without keys, is also what the source says that it cannot see. An entry that is refused
// for what may change without it, as a file that is not there yet, is tried again.
//
// Threads  On the control loop.
// Memory   What EtcdFollower allows: its limits are on keys and bytes of values.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/log.h"
#include "base/repeat_limit.h"
#include "io/etcd/etcd_client.h"
#include "io/etcd/etcd_follower.h"
#include "io/net/task.h"
#include "router/sources/muster.h"
#include "router/sources/source_defaults.h"
#include "router/sources/worker_sources.h"

namespace fathom {

class EtcdSource final : public WorkerSource, private EtcdListener {
 public:
  // `entry` is the operator's: its URL, and what holds for all workers of the source.
  static Result<std::unique_ptr<WorkerSource>> Create(Loop& control, Resolver& resolver,
                                                      Muster& muster, const WorkerRequest& entry,
                                                      EtcdClientOptions options, Log& log);
  ~EtcdSource() override = default;

  void Start() override;

 private:
  struct Named {
    WorkerId worker;
    WorkerRequest entry;
  };
  struct Refused {
    std::string reason;
    std::optional<Named> entry;  // to be tried again; nullopt: the value is not an entry
  };
  struct Life {};

  EtcdSource(Loop& control, SourceDefaults defaults, std::unique_ptr<Muster::Source> source,
             std::string prefix, Log& log)
      : loop_(control),
        defaults_(std::move(defaults)),
        source_(std::move(source)),
        prefix_(std::move(prefix)),
        log_(log) {}

  void OnValue(std::string_view key, std::string_view value) override;
  void OnGone(std::string_view key) override;
  void OnListed(bool whole) override;
  void OnPassedOver(std::string_view key, std::string_view why) override;
  void OnTrouble(std::string_view what) override {
    troubled_ = true;
    source_->Stale(std::string(what));
  }
  void OnRecovered() override {
    troubled_ = false;
    source_->Ok();
  }

  Result<Named> Read(std::string_view value) const;
  Result<void> Take(const std::string& key, Named named);
  // Takes it, or complains and keeps it for another try.
  void Try(const std::string& key, const Named& named);
  Task<void> TryAgain(std::weak_ptr<Life> life);
  // The next few of those that were refused, after this key. Returns the last one; empty: the end.
  std::string TrySome(const std::string& after);
  // The key names this worker no more.
  void Release(const std::string& key, WorkerId worker);
  void Complain(std::string_view key, std::string_view reason, std::optional<Named> entry = {});
  void SayUnknown();

  Loop& loop_;
  const SourceDefaults defaults_;
  const std::unique_ptr<Muster::Source> source_;
  const std::string prefix_;  // with its final slash
  Log& log_;
  std::unique_ptr<EtcdClient> client_;
  std::unique_ptr<EtcdFollower> follower_;
  std::map<std::string, Named, std::less<>> named_;             // by key
  std::map<WorkerId, std::set<std::string>> keys_;              // of each worker, never empty
  std::map<std::string, Refused, std::less<>> not_understood_;  // by key
  std::string not_followed_;  // why some keys are not; empty: all are
  RepeatLimit complaints_;
  bool listed_ = false;
  bool said_empty_ = false;  // logged: there is no key
  bool troubled_ = false;    // the keys may have been read, but are not watched
  const std::shared_ptr<Life> life_ = std::make_shared<Life>();
};

}  // namespace fathom
