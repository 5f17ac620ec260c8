// Who waits for which name, and what is known already? Between the loops, which ask, and the
// thread, which looks names up.
//
// Many askers of one name share one question. An asker that leaves, because its deadline has passed
// or its client has gone, takes nothing with it: the question goes on, and its answer is cached.
//
// Staleness  An expired answer is used when its refresh has been on its way for kRefreshHeadStart
// or
//            has failed. Changes of the hosts file and of resolv.conf are looked for when a
//            question begins, and every kCheckFilesEvery while cached answers are used.
// Threads    Any. The lock is held for a lookup in a table, never during I/O.
// Memory     kMaxQuestions are open at once; see NameCache for the rest.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/log.h"
#include "io/net/name_cache.h"
#include "io/net/wakeable_wait.h"

namespace fathom {

class NameDesk {
 public:
  static constexpr Duration kRefreshHeadStart = std::chrono::milliseconds(100);
  static constexpr Duration kCheckFilesEvery = std::chrono::seconds(1);
  static constexpr size_t kMaxQuestions = 8192;

  using Answer = NetResult<NameAnswer>;
  using Addresses = std::shared_ptr<const std::vector<Address>>;

  enum class Wants : uint8_t {
    kUsable,    // the cache, a stale answer, or the first half of an answer will do
    kComplete,  // the name servers' answer of now, or their failure
  };

  // In the frame of the coroutine that asks.
  class Asker {
   public:
    Asker(Loop& loop, std::string name, Wants wants, TimePoint deadline)
        : loop_(loop), name_(std::move(name)), wants_(wants), deadline_(deadline) {}

    WakeableWait& wait() { return *wait_; }
    const std::string& name() const { return name_; }

   private:
    friend class NameDesk;
    Loop& loop_;
    const std::string name_;
    const Wants wants_;
    const TimePoint deadline_;
    std::optional<WakeableWait> wait_;
    Addresses stale_;               // to be used instead of an answer
    std::optional<Answer> answer_;  // guarded by the desk's mutex
  };

  // `log` may be nullptr.
  explicit NameDesk(Log* log);
  ~NameDesk();
  NameDesk(const NameDesk&) = delete;
  NameDesk& operator=(const NameDesk&) = delete;

  // For loops. The answer, or nullopt: await the asker's wait, then Leave().
  std::optional<Answer> Enter(Asker& asker);
  Answer Leave(Asker& asker, WakeCause cause);

  // For the thread. What has been asked since the last call; nullopt: stop.
  std::optional<std::vector<std::string>> TakeQuestions();
  int wake_descriptor() const { return wake_; }
  // The first half of an answer: for those who need no more.
  void PublishPartial(const std::string& name, const NameAnswer& answer);
  void Publish(const std::string& name, const Answer& answer, NameSource source);
  void OnNewSources();

  // No question is answered afterwards.
  void Stop();

 private:
  struct Question {
    TimePoint begun;
    std::list<Asker*> askers;
  };

  // What is logged about it, once until a lookup succeeds.
  struct StaleUse {
    std::string reason;
    Duration age;
  };

  static TimePoint Now() { return std::chrono::steady_clock::now(); }
  // All with mutex_ held.
  std::optional<Answer> FromCache(const NameCache::Entry& entry, TimePoint now);
  Question* Join(Asker& asker, TimePoint now);
  void CheckFilesSometimes(TimePoint now);
  void WakeThread() const;
  static void Tell(Question& question, const Answer& answer, bool complete);
  std::optional<StaleUse> NoteStaleUse(const std::string& name, TimePoint now);
  static std::unexpected<NetError> Unanswered(const Asker& asker, WakeCause cause);
  bool WasStale(const std::string& name);
  // Without mutex_:
  void LogStaleUse(const std::string& name, const StaleUse& use) const;
  void LogWorksAgain(const std::string& name) const;

  Log* const log_;
  const int wake_;    // an eventfd
  std::mutex mutex_;  // guards all below
  NameCache cache_;
  std::unordered_map<std::string, Question> questions_;
  std::vector<std::string> to_start_;
  TimePoint files_checked_{};
  bool stopping_ = false;
};

}  // namespace fathom
