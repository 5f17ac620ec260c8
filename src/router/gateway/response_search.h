// Which worker has a response that this router does not remember?
//
// After a restart, or if another router passed the request, the workers are asked with
// GET /v1/responses/{id}, with their own keys, kAtOnce at a time, for kPatience together. The first
// that answers 200 has it, and the other questions are ended.
//
//   404 that names the id       it does not have the response
//   connection refused          neither: responses are in the memory of a process that has ended
//   other answers of 4xx, 500   the engine cannot be asked (it has no such route, or keeps none)
//   anything else               it has not answered
//
// If only one worker is left that may have it, it is that one: its own answer is the right one.
//
// Threads  One loop; SearchBoard is shared, and bounds what a flood of ids can cause.
// Memory   Of an answer at most kMostBody bytes, and nothing of a response itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/http/client_connection.h"
#include "io/net/resolver.h"
#include "io/net/task.h"
#include "io/net/wakeable_wait.h"
#include "router/discovery/directory.h"
#include "router/fleet/fleet.h"
#include "router/gateway/search_board.h"

namespace fathom {

// Whether a worker in this state can be asked about its responses, routed to or not.
bool HoldsResponses(const Member& member);

// Must be owned by a shared_ptr: questions that are no longer needed keep it.
class ResponseSearch : public std::enable_shared_from_this<ResponseSearch> {
 public:
  static constexpr size_t kAtOnce = 8;
  static constexpr size_t kMostBody = 16 << 10;
  static constexpr Duration kPatience = std::chrono::seconds(3);

  ResponseSearch(Loop& loop, Resolver& resolver, const Directory& directory, Fleet& fleet,
                 SearchBoard& board)
      : loop_(loop), resolver_(resolver), directory_(directory), fleet_(fleet), board_(board) {}

  // Among the workers that serve the model; an empty name: all. The texts must stay valid until the
  // task has ended.
  Task<SearchResult> Find(std::string_view id, std::string_view model);

 private:
  enum class Verdict : uint8_t { kHasIt, kHasNot, kCannotTell, kSilent };
  struct Race {
    std::string id;
    std::string path;
    TimePoint deadline;
    std::shared_ptr<const FleetSnapshot> fleet;
    std::vector<const Member*> asked;  // in this order
    size_t next = 0;
    size_t open = 0;                 // questioners
    std::vector<Verdict> verdicts;   // of each one asked
    const Member* holder = nullptr;  // the first that has it
    std::vector<ClientConnection*> connections;
    WakeableWait* waiting = nullptr;
  };

  // Waits for workers whose first probe is pending: they may have it.
  Task<std::shared_ptr<const FleetSnapshot>> AwaitProbes(std::string_view model,
                                                         TimePoint deadline);
  Task<SearchResult> AskAll(std::string_view id, std::string_view model, TimePoint deadline);
  static Task<void> AskSome(std::shared_ptr<ResponseSearch> self, std::shared_ptr<Race> race);
  Task<Verdict> Ask(const Worker& worker, Race& race);
  Task<Verdict> AskOn(ClientConnection& connection, const Worker& worker, const Race& race);
  static SearchResult Conclude(const Race& race, std::string_view model);

  Loop& loop_;
  Resolver& resolver_;
  const Directory& directory_;
  Fleet& fleet_;
  SearchBoard& board_;
};

}  // namespace fathom
