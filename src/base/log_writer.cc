#include "base/log_writer.h"

#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace fathom {
namespace {

// False if nothing could be written now.
bool Ready(int fd, int milliseconds) {
  pollfd wanted{.fd = fd, .events = POLLOUT, .revents = 0};
  return ::poll(&wanted, 1, milliseconds) > 0;
}

// Never waits for the reader of a pipe, even if another thread fills the pipe just now. A
// descriptor for which the kernel cannot tell is a file or a terminal.
ssize_t WriteAtOnce(int fd, char* bytes, size_t count) {
  const iovec piece{.iov_base = bytes, .iov_len = count};
  const ssize_t n = ::pwritev2(fd, &piece, 1, -1, RWF_NOWAIT);
  if (n >= 0 || errno != EOPNOTSUPP || !Ready(fd, 0)) return n;
  return ::write(fd, bytes, count);
}

}  // namespace

// Bytes between tail and head are records, each behind its size. Positions only grow: that of a
// byte in the ring is its remainder.
class LogWriter::Ring {
 public:
  Ring(int fd, Report lost, Room room)
      : fd_(fd),
        lost_(std::move(lost)),
        reserved_(std::min(room.reserved, room.all)),
        bytes_(room.all) {}

  void Take(std::string_view record, Rank rank) {
    std::unique_lock lock(mutex_);
    const uint64_t head = head_.load(std::memory_order_relaxed);
    const size_t used = head - tail_.load(std::memory_order_relaxed);
    const size_t limit = bytes_.size() - (rank == Rank::kImportant ? 0 : reserved_);
    if (used + sizeof(Size) + record.size() > limit) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    const Size size = static_cast<Size>(record.size());
    CopyIn(head, {reinterpret_cast<const char*>(&size), sizeof(size)});
    CopyIn(head + sizeof(size), record);
    head_.store(head + sizeof(size) + size, std::memory_order_release);  // pairs with WriteRest
    const bool wake = std::exchange(waits_, false);
    lock.unlock();
    if (wake) more_.notify_one();
  }

  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

  void Run() {
    std::string record;
    while (Next(record)) {
      Write(record, [this](size_t written) { of_first_.store(written); });
      Written(record.size());
      ReportDropped();
    }
    ReportDropped();
    const std::lock_guard lock(mutex_);
    ended_ = true;
    over_.notify_all();
  }

  void End(Duration patience) {
    std::unique_lock lock(mutex_);
    ending_ = true;
    more_.notify_one();
    over_.wait_for(lock, patience, [this] { return ended_; });
  }

  void WriteRest() const {
    const uint64_t head = head_.load(std::memory_order_acquire);
    uint64_t at = tail_.load(std::memory_order_relaxed);
    size_t skipped = of_first_.load(std::memory_order_relaxed);  // the thread wrote them already
    while (at < head) {
      Size size = 0;
      CopyOut(at, reinterpret_cast<char*>(&size), sizeof(size));
      at += sizeof(size);
      if (!WriteNow(at + std::min<size_t>(skipped, size), at + size)) return;
      skipped = 0;
      at += size;
    }
  }

 private:
  using Size = uint32_t;

  void CopyIn(uint64_t at, std::string_view bytes) {
    const size_t offset = at % bytes_.size();
    const size_t first = std::min(bytes.size(), bytes_.size() - offset);
    std::memcpy(bytes_.data() + offset, bytes.data(), first);
    std::memcpy(bytes_.data(), bytes.data() + first, bytes.size() - first);
  }
  void CopyOut(uint64_t at, char* to, size_t count) const {
    const size_t offset = at % bytes_.size();
    const size_t first = std::min(count, bytes_.size() - offset);
    std::memcpy(to, bytes_.data() + offset, first);
    std::memcpy(to + first, bytes_.data(), count - first);
  }

  // The oldest record, which stays in the ring until it is written. False when there is none left.
  bool Next(std::string& record) {
    std::unique_lock lock(mutex_);
    const auto have = [this] { return head_.load() != tail_.load(); };
    while (!have()) {
      if (ending_) return false;
      waits_ = true;
      more_.wait(lock);
    }
    Size size = 0;
    CopyOut(tail_.load(), reinterpret_cast<char*>(&size), sizeof(size));
    record.resize(size);
    CopyOut(tail_.load() + sizeof(size), record.data(), size);
    return true;
  }

  void Written(size_t size) {
    const std::lock_guard lock(mutex_);
    of_first_.store(0);
    tail_.store(tail_.load() + sizeof(Size) + size);
  }

  // Waits as long as the reader does. What cannot be written at all is dropped.
  void Write(std::string_view record, const std::function<void(size_t)>& tell) {
    for (size_t written = 0; written < record.size();) {
      const ssize_t n = ::write(fd_, record.data() + written, record.size() - written);
      if (n > 0) {
        tell(written += static_cast<size_t>(n));
      } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        Ready(fd_, 100);
      } else if (n == 0 || errno != EINTR) {
        dropped_.fetch_add(1, std::memory_order_relaxed);
        return;
      }
    }
  }

  void ReportDropped() {
    const uint64_t now = dropped();
    // While the ring is full more will be dropped: one report for all of them is enough.
    const bool crowded = head_.load() - tail_.load() > bytes_.size() / 2;
    if (now == reported_ || crowded) return;
    Write(lost_(now - std::exchange(reported_, now)), [](size_t) {});
  }

  // At once and in pieces that a pipe takes whole, or not at all.
  bool WriteNow(uint64_t from, uint64_t to) const {
    std::array<char, PIPE_BUF> piece;
    while (from < to) {
      const size_t count = std::min<uint64_t>(piece.size(), to - from);
      CopyOut(from, piece.data(), count);
      const ssize_t n = WriteAtOnce(fd_, piece.data(), count);
      if (n <= 0) return false;
      from += static_cast<uint64_t>(n);
    }
    return true;
  }

  const int fd_;
  const Report lost_;
  const size_t reserved_;
  std::vector<char> bytes_;  // written under mutex_, between head and tail
  std::mutex mutex_;
  std::condition_variable more_;
  std::condition_variable over_;
  bool waits_ = false;  // guarded by mutex_, as the next two
  bool ending_ = false;
  bool ended_ = false;
  // Changed under mutex_; atomic for WriteRest alone.
  std::atomic<uint64_t> head_ = 0;
  std::atomic<uint64_t> tail_ = 0;
  std::atomic<size_t> of_first_ = 0;  // bytes of the oldest record that are written
  std::atomic<uint64_t> dropped_ = 0;
  uint64_t reported_ = 0;  // the thread's
};

LogWriter::LogWriter(int fd, Report lost, Room room)
    : ring_(std::make_shared<Ring>(fd, std::move(lost), room)) {
  // Signals are for the threads that the program knows of.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread([ring = ring_] { ring->Run(); });
  pthread_setname_np(thread.native_handle(), "log");
  thread.detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LogWriter::~LogWriter() { End(kPatience); }

void LogWriter::End(Duration patience) { ring_->End(patience); }

void LogWriter::Take(std::string_view record, Rank rank) { ring_->Take(record, rank); }

uint64_t LogWriter::dropped() const { return ring_->dropped(); }

void LogWriter::WriteRest() const { ring_->WriteRest(); }

}  // namespace fathom
