#include "io/net/side_work.h"

#include <utility>

namespace fathom {

SideWork::SideWork(size_t threads) {
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

SideWork::~SideWork() { Stop(); }

bool SideWork::Run(std::function<void()> job, size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || jobs_.size() >= kMaxWaiting || bytes > kMaxBytes - bytes_) return false;
    jobs_.push_back({std::move(job), bytes});
    bytes_ += bytes;
  }
  wake_.notify_one();
  return true;
}

void SideWork::Stop() {
  std::deque<Job> dropped;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(jobs_);
  }
  wake_.notify_all();
  dropped.clear();
  threads_.clear();  // joins
}

void SideWork::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (stopping_) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job.run();
    job.run = nullptr;  // frees what the job owns now, not when the next job replaces it
    lock.lock();
    bytes_ -= job.bytes;
  }
}

}  // namespace fathom
