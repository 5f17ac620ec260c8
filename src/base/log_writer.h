// Which thread waits for the log? Only the one that writes it.
//
// Records wait in a ring of fixed size until they are written, each by one write(2) where the
// descriptor takes it whole. If the descriptor is not read the ring fills. A part of it is
// reserved for warnings and errors. Records that do not fit are dropped and counted, and the number
// is written as a record of its own as soon as there is room.
//
// Threads  Take: any. It holds a mutex while it copies the record, and never while anything is
//          written.
// Memory   Room::all bytes, allocated at the start.
// Exit     The destructor waits until everything is written, but no longer than kPatience.
// Crash    WriteRest may be called by a signal handler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"

namespace fathom {

class LogWriter {
 public:
  struct Room {
    size_t all = 1 << 20;       // bytes
    size_t reserved = 1 << 18;  // of them, for warnings and errors
  };
  enum class Rank : uint8_t { kOrdinary, kImportant };

  static constexpr Duration kPatience = std::chrono::milliseconds(800);

  // Makes the record, with its newline, that reports a number of dropped ones.
  using Report = std::function<std::string(uint64_t)>;

  LogWriter(int fd, Report lost, Room room);
  LogWriter(int fd, Report lost) : LogWriter(fd, std::move(lost), Room()) {}
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  void Take(std::string_view record, Rank rank);
  uint64_t dropped() const;

  // Waits until everything is written, at most `patience`. Nothing may be taken afterwards.
  void End(Duration patience);

  // What is still in the ring, as far as the descriptor takes it at once. Only before the process
  // dies: the thread may be writing the same record.
  void WriteRest() const;

 private:
  class Ring;
  // Outlives this object while the thread is stuck in a write to a pipe that is not read.
  const std::shared_ptr<Ring> ring_;
};

}  // namespace fathom
