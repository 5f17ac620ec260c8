// Which workers does a watched file name now?
//
// The file is looked at twice a second, by its path, so a link that points elsewhere is a change. A
// file that is still being written is left alone for a moment. Then it is taken as a whole: each
// entry is checked before the first one is applied. A file that is refused, or away, changes
// nothing: the workers stay, and the source is stale until the file is right again. One that is
// refused is tried again although it is unchanged: what it names (a ca_file, a variable) may
// appear.
//
// Threads  A thread of its own, because reading a file may block. One that hangs in the file system
//          is left behind at the end.
// Memory   kMostBytes of text, WorkerListReader::kMost entries.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "router/sources/muster.h"
#include "router/sources/worker_sources.h"

namespace fathom {

struct FileSourceOptions {
  Duration interval = std::chrono::milliseconds(500);  // between two looks
  Duration at_rest = std::chrono::seconds(1);          // since it was written
  Duration away = std::chrono::seconds(2);             // until a missing file is reported
  Duration again = std::chrono::seconds(10);           // until a refused file is tried again
};

class FileSource final : public WorkerSource {
 public:
  static constexpr size_t kMostBytes = size_t{4} << 20;

  // `entry` has the URL file:///PATH and what holds for all workers of the file.
  static Result<std::unique_ptr<FileSource>> Create(const WorkerRequest& entry, Muster& muster,
                                                    Log& log, FileSourceOptions options = {});
  ~FileSource() override;

  void Start() override;

 private:
  struct Shared;
  class Watch;

  explicit FileSource(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  const std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace fathom
