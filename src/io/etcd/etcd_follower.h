// What does etcd hold below this prefix, and what changes?
//
// Reads all keys below the prefix at one revision, in pages, then watches from the next revision
// on. Whenever continuity is lost (the revision was compacted, the watch was canceled, the cluster
// was restored from a backup or replaced) the keys are read again and compared with what is known:
// the listener hears of the differences alone, and of new keys before vanished ones.
//
// Outages    Nothing is forgotten while etcd is away. Attempts follow each other with a pause of 1
// s
//            to 30 s, half of it random, and go to the next member each time.
// Stale      A watch is silent when nothing changes, and when its member is cut off. A linearizable
// members    read every `check` tells the two apart: it must be answered, by the same member, and
//            what it says is newest must have arrived.
// Replaced   A cluster with another id, or with an older revision than before, may be empty because
// clusters   its data were lost. Keys that it does not have are gone only after `doubt`.
// Memory     A hash per key, at most kMaxKeys. What exceeds a limit is passed over and reported
//            once per key, and the listener keeps that key's former value.
// Threads    One loop. Stop() ends it soon; the client, the listener and the follower must stay
//            until running() is false.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/random.h"
#include "io/etcd/etcd_client.h"
#include "io/net/loop.h"
#include "io/net/task.h"
#include "io/net/wakeable_wait.h"

namespace fathom {

class EtcdStream;

// Called on the loop.
class EtcdListener {
 public:
  // A key that is new, has another value than before, or is within the limits again. Keys are
  // whole, with the prefix.
  virtual void OnValue(std::string_view key, std::string_view value) = 0;
  // A key of which there was a value, or that was passed over.
  virtual void OnGone(std::string_view key) = 0;
  // All keys have been read, or read again. False: but for those beyond a limit on all together.
  virtual void OnListed(bool whole) = 0;
  // A key that exceeds a limit. An empty key: the limit concerns all keys together.
  virtual void OnPassedOver(std::string_view key, std::string_view why) = 0;
  // Once when an outage begins, and when its cause changes.
  virtual void OnTrouble(std::string_view what) = 0;
  virtual void OnRecovered() = 0;

 protected:
  ~EtcdListener() = default;
};

struct EtcdFollowerOptions {
  Duration first_pause = std::chrono::seconds(1);
  Duration longest_pause = std::chrono::seconds(30);
  Duration check = std::chrono::seconds(15);  // between two linearizable reads beside the watch
  Duration doubt = std::chrono::seconds(60);
  uint64_t page = 256;       // keys
  size_t max_keys = 16'384;  // known at once
  size_t max_key = 1024;     // bytes
  size_t max_value = 64 << 10;
  size_t max_values = 64 << 20;  // of all keys together
};

class EtcdFollower {
 public:
  // `prefix` as EtcdAddress has it, with its final slash.
  EtcdFollower(Loop& loop, EtcdClient& client, std::string prefix, EtcdListener& listener,
               EtcdFollowerOptions options = {});
  EtcdFollower(const EtcdFollower&) = delete;
  EtcdFollower& operator=(const EtcdFollower&) = delete;

  void Start();
  void Stop();
  bool running() const { return running_; }

 private:
  struct Known {
    uint64_t hash = 0;
    size_t size = 0;
    bool reported = false;     // the listener has a value of it
    bool passed_over = false;  // its newest value exceeds a limit, and that was reported
    uint64_t listing = 0;      // the last one that had it
  };

  Task<void> Run();
  // Ends with an error, or without one if it is worth trying again at once.
  Task<EtcdResult<void>> Round();
  Task<EtcdResult<void>> List();
  Task<EtcdResult<EtcdRange>> ReadPage(std::string from, uint64_t revision, uint64_t& page);
  Task<EtcdResult<void>> Watch();
  Task<EtcdResult<void>> FollowStream(EtcdStream& stream);
  // Is the watch's member in order, and has the watch missed nothing?
  Task<EtcdResult<void>> Check();
  Task<void> Pause();

  // False if the keys must be read again.
  bool Accept(const EtcdWatchMessage& message);
  bool SameHistory(const EtcdHeader& header) const;
  void Store(const EtcdPair& pair);
  void PassOver(const std::string& key, Known& known, std::string_view why);
  void Remove(const std::string& key);
  void Forget(std::map<std::string, Known, std::less<>>::iterator at);
  void RemoveMissing(const std::string& read_up_to, bool complete);
  void RemoveDoubtful();
  void NoteTrouble(const EtcdError& error);
  void NoteOrder();

  Loop& loop_;
  EtcdClient& client_;
  const std::string prefix_;
  const std::string end_;  // of the range
  EtcdListener& listener_;
  const EtcdFollowerOptions options_;
  Random random_;

  std::map<std::string, Known, std::less<>> known_;
  size_t values_ = 0;  // bytes of the reported ones
  uint64_t listing_ = 0;
  std::set<std::string, std::less<>> doubtful_;  // missing in a cluster that was replaced
  TimePoint doubt_until_ = kNever;
  bool uncounted_ = false;   // etcd has keys that known_ has not
  bool said_keys_ = false;   // reported: more than max_keys
  bool said_names_ = false;  // reported: a key longer than max_key

  uint64_t cluster_ = 0;
  uint64_t seen_ = 0;       // everything up to this revision is known
  bool must_list_ = true;   // the next round begins with it
  bool confirmed_ = false;  // etcd has confirmed the watch of this round
  TimePoint listed_at_{};
  TimePoint next_check_{};
  uint32_t missed_checks_ = 0;
  uint64_t due_revision_ = 0;  // the last check found it to be the newest
  uint64_t odd_count_at_ = 0;  // the last check found another number of keys, at this revision
  uint32_t failures_ = 0;      // in a row
  bool troubled_ = false;
  EtcdCause trouble_cause_{};
  int trouble_detail_ = 0;

  bool running_ = false;
  bool stopped_ = false;
  EtcdStream* stream_ = nullptr;
  WakeableWait* pause_ = nullptr;
};

}  // namespace fathom
