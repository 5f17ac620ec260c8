// Is this response being looked for already, was it a moment ago, and may one more be looked for?
//
// Clients can name any number of ids that no worker has, and each could become a question to every
// worker. What bounds that, for all loops together:
//
//   one search per id    requests with the same id wait for the search that is under way
//   kRemembered          a result that names no worker for good stands for so long
//   kPerSecond, kBurst   searches, each of which asks a worker at most once. A large fleet counts
//                        for more: one more for each kFleetUnit workers
//   kMostOpen            searches at a time
//
// Threads  Any; one mutex, taken twice per search.
// Memory   kMostRemembered results and kMostOpen searches.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "io/net/task.h"
#include "io/net/wakeable_wait.h"
#include "router/gateway/search_result.h"

namespace fathom {

class SearchBoard {
 public:
  static constexpr Duration kRemembered = std::chrono::seconds(5);
  static constexpr size_t kMostRemembered = size_t{1} << 14;
  static constexpr double kPerSecond = 100;
  static constexpr double kBurst = 200;
  static constexpr size_t kFleetUnit = 64;
  static constexpr size_t kMostOpen = 64;

  explicit SearchBoard(uint64_t secret) : secret_(secret) {}

  // One search.
  class Search {
   private:
    friend class SearchBoard;
    uint64_t key = 0;
    std::optional<SearchResult> result;  // guarded by the board's mutex, as the next
    std::list<WakeableWait*> waiting;
  };
  struct Turn {
    std::optional<SearchResult> known;  // nothing is to be done
    std::shared_ptr<Search> search;     // else
    bool leads = false;                 // the caller searches, and must call Close(); else Await()
  };
  // An id is looked for among the workers of a model.
  Turn Join(std::string_view id, std::string_view model, size_t workers, TimePoint now);
  void Close(Search& search, const SearchResult& result, TimePoint now);
  // Nothing is under way any more, or the deadline has passed. nullopt: there is no result yet.
  Task<std::optional<SearchResult>> Await(std::shared_ptr<Search> search, Loop& loop,
                                          TimePoint deadline);

 private:
  struct Recent {
    uint64_t key;
    SearchResult result;
    TimePoint until;
  };

  uint64_t KeyOf(std::string_view id, std::string_view model) const;
  // With mutex_ held.
  std::optional<SearchResult> Recall(uint64_t key, TimePoint now);
  bool TakeBudget(size_t workers, TimePoint now);
  void Expire(TimePoint now);

  const uint64_t secret_;
  std::mutex mutex_;  // guards the rest
  std::unordered_map<uint64_t, std::shared_ptr<Search>> open_;
  std::list<Recent> by_age_;  // oldest first
  std::unordered_map<uint64_t, std::list<Recent>::iterator> by_key_;
  double budget_ = kBurst;
  TimePoint counted_{};
};

}  // namespace fathom
