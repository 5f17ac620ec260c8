// What does this way of choosing a worker do for those who wait for their answers? One router with
// its own mock engines, and people who talk to it.
//
// Threads  Those of its router, one per engine and one for the people; everything here is called
//          from one more.
// Memory   The people are never destroyed: they are in the middle of something when a demo ends.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/client/conversations.h"
#include "lab/demo/demo_moment.h"
#include "lab/demo/token_window.h"
#include "lab/mock/mock_server.h"
#include "router/serve/frontend.h"

namespace fathom {

class DemoSide {
 public:
  // When it returns, every worker can be routed to, or time is up. Errors are the caller's where
  // the settings or the port are to blame.
  static Result<std::unique_ptr<DemoSide>> Start(const Settings& settings, const std::string& mode,
                                                 int64_t port, Log& log);
  ~DemoSide();
  DemoSide(const DemoSide&) = delete;
  DemoSide& operator=(const DemoSide&) = delete;

  void BeginConversations(const Settings& settings);

  // Rates are those of the last second.
  const SideMoment& Look(Duration elapsed);
  // For the summary: rates over the whole run instead.
  const SideMoment& Conclude(Duration elapsed);

  // From now on the busiest worker loses every second batch of its KV events, until Repair(). Both
  // do nothing where there is nothing to break or to repair.
  void Break(Duration elapsed);
  void Repair(Duration elapsed);

  // Of the last look.
  const ConversationReport& report() const { return report_; }

 private:
  class People;

  DemoSide() = default;
  Result<void> StartMocks(const Settings& settings, Log& log);
  Result<void> StartRouter(const std::string& mode, int64_t port, Log& log);
  void AwaitWorkers() const;
  void Remember(Duration elapsed);
  void LookAtPeople();
  void LookAtWorkers();
  void LookAtFeeds();
  void LookAtTrust(WorkerMoment& worker, const MockServer& mock) const;
  size_t Busiest() const;

  std::vector<std::unique_ptr<MockServer>> mocks_;
  std::vector<TokenCounts> counts_;   // of each mock
  std::vector<TokenWindow> windows_;  // of each mock
  size_t broken_ = 0;                 // the mock that moment_.fault is about
  std::unique_ptr<Frontend> router_;
  People* people_ = nullptr;
  SideMoment moment_;
  ConversationReport report_;
  ConversationReport remembered_;  // about a second ago
  TokenCounts remembered_tokens_;
  Duration remembered_at_{};
};

}  // namespace fathom
