#include "io/net/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/check.h"

namespace fathom {
namespace {

constexpr int kBatch = 256;
constexpr int kFreshTimeEvery = 16;  // events
// Deadlines wait for so many full batches of events.
constexpr int kMostBatchesFirst = 256;

TimePoint Now() { return std::chrono::steady_clock::now(); }

}  // namespace

void IoOperation::await_suspend(std::coroutine_handle<> waiting) {
  waiting_ = waiting;
  Park();
  loop_.timers_.Arm(timer_, deadline_);
}

void IoOperation::Park() {
  IoOperation*& slot = want_ == Want::kRead ? source_.reader : source_.writer;
  CHECK(slot == nullptr);
  slot = this;
}

void IoOperation::Interrupt(IoStatus status) {
  if (source_.reader == this) source_.reader = nullptr;
  if (source_.writer == this) source_.writer = nullptr;
  timer_.Disarm();
  status_ = status;
  loop_.interrupted_.push_back(this);
}

void SleepOperation::await_suspend(std::coroutine_handle<> waiting) {
  waiting_ = waiting;
  loop_.timers().Arm(timer_, until_);
}

Loop::Loop()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      now_(Now()),
      timers_(now_) {
  CHECK(epoll_ >= 0 && wake_ >= 0);
  // Not EPOLLOUT: each read of the eventfd would report it writable and cost an idle turn.
  wake_source_ = &Register(wake_, EPOLLIN | EPOLLET);
}

Loop::~Loop() {
  Release(*wake_source_);
  ::close(wake_);
  ::close(epoll_);
}

void Loop::Run() {
  std::array<epoll_event, kBatch> events;
  while (!stopping_.load(std::memory_order_acquire)) {
    const TimePoint asked = Now();
    const int wait = WaitMilliseconds(asked);
    const int n = epoll_wait(epoll_, events.data(), kBatch, wait);
    CHECK(n >= 0 || errno == EINTR);
    now_ = Now();
    for (int i = 0; i < n; ++i) {
      if (i > 0 && i % kFreshTimeEvery == 0) now_ = Now();
      Handle(*static_cast<Source*>(events[static_cast<size_t>(i)].data.ptr),
             events[static_cast<size_t>(i)].events);
    }
    RetryReaders();
    FireTimers(n, n == 0 ? std::min(now_, asked + std::chrono::milliseconds(wait)) : asked);
    ResumeInterrupted();
    RunPosted();
    free_.insert(free_.end(), released_.begin(), released_.end());
    released_.clear();
  }
}

// What is ready must not time out because this thread was late. `known`: everything that was ready
// by then has been handled, if it was not more than a batch. That is not the time at which
// epoll_wait returned: a thread that is stopped on its way back (SIGSTOP, a busy machine) brings an
// old answer.
void Loop::FireTimers(int events, TimePoint known) {
  if (events < 0) return;  // interrupted: nothing is known
  if (events == kBatch && ++full_batches_ < kMostBatchesFirst) return;
  full_batches_ = 0;
  timers_.Advance(known);
}

int Loop::WaitMilliseconds(TimePoint now) {
  // Work that was posted or interrupted outside a turn (before Run, or by RunPosted) must not
  // sleep.
  if (!interrupted_.empty() || !retries_.empty()) return 0;
  if (posted_any_.load(std::memory_order_acquire)) return 0;
  const auto wait = timers_.UntilNext(now);
  if (!wait) return -1;
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(*wait).count());
}

void Loop::Handle(Source& source, uint32_t events) {
  if (source.fd < 0) return;  // released earlier in this turn
  if (&source == wake_source_) {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t n = ::read(wake_, &count, sizeof(count));
    return;
  }
  if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) source.readable = true;
  if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) source.writable = true;
  if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) source.hung_up = true;
  // Each step may release the source; a released one has neither operations nor a watcher.
  if (source.readable && source.reader != nullptr) Advance(source.reader);
  const bool may_write = source.writable || (source.input_ends_write && source.readable);
  if (may_write && source.writer != nullptr) Advance(source.writer);
  if (source.hung_up && source.watcher != nullptr) source.watcher->OnHangup();
}

void Loop::Advance(IoOperation*& slot) {
  IoOperation& operation = *slot;
  slot = nullptr;
  if (!operation.Attempt()) {
    operation.Park();
    return;
  }
  operation.timer_.Disarm();
  operation.waiting_.resume();
}

// A source that was released in the meantime has no reader. For one that was reused, an extra
// attempt is harmless.
void Loop::RetryReaders() {
  const std::vector<Source*> now = std::exchange(retries_, {});
  for (Source* const source : now) {
    if (source->reader != nullptr) Advance(source->reader);
  }
}

void Loop::ResumeInterrupted() {
  // Resuming one may interrupt others, which are appended to the list.
  for (size_t i = 0; i < interrupted_.size(); ++i) interrupted_[i]->waiting_.resume();
  interrupted_.clear();
}

void Loop::RunPosted() {
  if (!posted_any_.load(std::memory_order_acquire)) return;
  now_ = Now();
  std::vector<std::move_only_function<void()>> work;
  {
    const std::lock_guard lock(mutex_);
    work.swap(posted_);
    posted_any_.store(false, std::memory_order_relaxed);
  }
  for (auto& call : work) call();
}

void Loop::Post(std::move_only_function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(work));
    posted_any_.store(true,
                      std::memory_order_release);  // pairs with RunPosted and WaitMilliseconds
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(wake_, &one, sizeof(one));
}

void Loop::Stop() {
  stopping_.store(true, std::memory_order_release);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(wake_, &one, sizeof(one));
}

Source& Loop::Register(int fd) { return Register(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET); }

Source& Loop::Register(int fd, uint32_t events) {
  Source* source = nullptr;
  if (free_.empty()) {
    source = &sources_.emplace_back();
  } else {
    source = free_.back();
    free_.pop_back();
  }
  *source = Source{.fd = fd};
  epoll_event event{};
  event.events = events;
  event.data.ptr = source;
  CHECK(epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0);
  return *source;
}

void Loop::Release(Source& source) {
  CHECK(source.reader == nullptr && source.writer == nullptr);
  source = Source{};
  released_.push_back(&source);
}

Source& Loop::RegisterInput(int fd) { return Register(fd, EPOLLIN | EPOLLET); }

void Loop::Forget(Source& source) {
  CHECK(epoll_ctl(epoll_, EPOLL_CTL_DEL, source.fd, nullptr) == 0);
  Release(source);
}

void Loop::Retry(Source& source) { retries_.push_back(&source); }

void Loop::Cancel(Source& source) {
  if (source.reader != nullptr) source.reader->Interrupt(IoStatus::kCancelled);
  if (source.writer != nullptr) source.writer->Interrupt(IoStatus::kCancelled);
}

}  // namespace fathom
