#include "router/gateway/page_desk.h"

#include "router/gateway/openai_error.h"

namespace fathom {

Task<Answer> PageDesk::Ask(Loop& asking, const PageQuestion& question) {
  if (asked_.fetch_add(1, std::memory_order_relaxed) >= kMostAsked) {
    asked_.fetch_sub(1, std::memory_order_relaxed);
    co_return OpenAiError(503, "too_many_pages",
                          "too many pages are being made at the same time; ask again later");
  }
  Asked asked(asking, question);
  control_.Post([this, &asked] { Take(asked); });
  co_await asked.answered;
  co_return std::move(asked.answer);
}

void PageDesk::Take(Asked& asked) {
  waiting_.push_back(&asked);
  if (!beginning_) Spawn(BeginAll());
}

Task<void> PageDesk::BeginAll() {
  beginning_ = true;
  while (!waiting_.empty()) {
    Asked& next = *waiting_.front();
    waiting_.pop_front();
    Spawn(Make(next));
    co_await control_.Sleep(Duration::zero());
  }
  beginning_ = false;
}

Task<void> PageDesk::Make(Asked& asked) {
  auto making = pages_.Make(asked.question);
  asked.answer = co_await making;
  asked_.fetch_sub(1, std::memory_order_relaxed);
  asked.answered.Wake();  // the last use: its owner may end at once
}

}  // namespace fathom
