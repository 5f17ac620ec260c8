// Who makes the pages for operators? The control loop, for all listeners. A loop that serves
// requests hands the question over and goes on with its other connections.
//
// Pages grow with the fleet, the index and the number of decisions that are kept, and /health and
// /metrics may be asked for by anyone. So at most one page is begun per turn of the control loop:
// probes and timers get their turns in between, however many pages are wanted.
//
// Threads  Ask() on any loop; everything else on the control loop.
// Memory   At most kMostAsked pages are waited for; further questions are answered with 503.
#pragma once

#include <atomic>
#include <deque>

#include "io/net/wakeable_wait.h"
#include "router/gateway/operator_pages.h"

namespace fathom {

class PageDesk {
 public:
  static constexpr size_t kMostAsked = 64;

  PageDesk(GatewayContext& context, Loop& control) : control_(control), pages_(context, control) {}
  PageDesk(const PageDesk&) = delete;
  PageDesk& operator=(const PageDesk&) = delete;

  // `asking` is the caller's loop. What the question refers to must stay until the answer is there.
  Task<Answer> Ask(Loop& asking, const PageQuestion& question);

 private:
  struct Asked {
    explicit Asked(Loop& asking, const PageQuestion& q) : question(q), answered(asking) {}
    const PageQuestion& question;
    Answer answer;
    WakeableWait answered;
  };

  void Take(Asked& asked);
  Task<void> BeginAll();
  Task<void> Make(Asked& asked);

  Loop& control_;
  OperatorPages pages_;
  std::atomic<size_t> asked_{0};
  std::deque<Asked*> waiting_;
  bool beginning_ = false;  // BeginAll() runs
};

}  // namespace fathom
