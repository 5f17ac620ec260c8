#include "router/sources/file_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "codec/url.h"
#include "config/workers_file.h"
#include "router/sources/source_defaults.h"
#include "router/sources/source_url.h"
#include "router/sources/worker_entry.h"

namespace fathom {
namespace {

struct FileStamp {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = 0;
  int64_t modified = 0;  // nanoseconds
  int64_t changed = 0;

  bool operator==(const FileStamp&) const = default;
};

struct FileText {
  std::string text;
  FileStamp stamp;
};

int64_t NanosecondsOf(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

FileStamp StampOf(const struct stat& status) {
  return {status.st_dev, status.st_ino, status.st_size, NanosecondsOf(status.st_mtim),
          NanosecondsOf(status.st_ctim)};
}

std::unexpected<Error> FileProblem(const std::string& path) {
  return Fail(Blame::kPeer, "{} cannot be read: {}", path, std::strerror(errno));
}

Result<FileStamp> Stamp(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return FileProblem(path);
  if (S_ISREG(status.st_mode)) return StampOf(status);
  return Fail(Blame::kPeer, "{} is not a regular file", path);
}

// Never waits for the other end of a pipe: what the path names may have changed since Stamp().
Result<FileText> ReadText(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return FileProblem(path);
  const auto read = [&]() -> Result<FileText> {
    struct stat status{};
    if (::fstat(file, &status) != 0) return FileProblem(path);
    if (!S_ISREG(status.st_mode)) return Fail(Blame::kPeer, "{} is not a regular file", path);
    FileText found{.text = {}, .stamp = StampOf(status)};
    char piece[16 << 10];
    for (;;) {
      const ssize_t count = ::read(file, piece, sizeof(piece));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return FileProblem(path);
      if (count == 0) return found;
      found.text.append(piece, static_cast<size_t>(count));
      if (found.text.size() > FileSource::kMostBytes) {
        return Fail(Blame::kCaller, "{}: has more than {} bytes", path, FileSource::kMostBytes);
      }
    }
  }();
  ::close(file);
  return read;
}

}  // namespace

struct FileSource::Shared {
  Shared(FileUrl url, SourceDefaults all, Log& l, FileSourceOptions o)
      : path(std::move(url.path)), defaults(std::move(all)), log(l), options(o) {}

  const std::string path;
  const SourceDefaults defaults;
  Log& log;  // with `source` only
  const FileSourceOptions options;
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_ptr<Muster::Source> source;  // guarded by mutex; null: the end
  bool done = false;                       // guarded by mutex: the thread has ended
};

// Owned by the thread.
class FileSource::Watch {
 public:
  explicit Watch(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  void Run() {
    while (!Ended()) {
      Look();
      std::unique_lock lock(shared_->mutex);
      shared_->changed.wait_for(lock, shared_->options.interval,
                                [&] { return shared_->source == nullptr; });
    }
    const std::lock_guard lock(shared_->mutex);
    shared_->done = true;
    shared_->changed.notify_all();
  }

 private:
  bool Ended() const {
    const std::lock_guard lock(shared_->mutex);
    return shared_->source == nullptr;
  }

  void Look() {
    const auto stamp = Stamp(shared_->path);
    if (!stamp) return Away(stamp.error());
    const TimePoint now = std::chrono::steady_clock::now();
    const bool try_again = !verdict_.empty() && now - taken_at_ >= shared_->options.again;
    if (*stamp == seen_ && !try_again) {
      if (std::exchange(away_since_, std::nullopt)) Settle();
      return;
    }
    if (!AtRest(*stamp)) return;
    auto read = ReadText(shared_->path);
    if (!read) {
      if (read.error().blame != Blame::kCaller) return Away(read.error());
      seen_ = *stamp;
      verdict_ = read.error().what;
    } else {
      // Written meanwhile: the next look sees another stamp.
      seen_ = read->stamp;
      Take(read->text);
    }
    taken_at_ = now;
    away_since_.reset();
    Settle();
  }

  // A clock that is behind that of the file system must not delay it for ever.
  bool AtRest(const FileStamp& stamp) const {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    const Duration age(NanosecondsOf(now) - std::max(stamp.modified, stamp.changed));
    return age < Duration::zero() || age >= shared_->options.at_rest;
  }

  // Editors replace a file by another one: there is a moment without any.
  void Away(const Error& error) {
    const TimePoint now = std::chrono::steady_clock::now();
    if (!away_since_) away_since_ = now;
    if (tried_ && now - *away_since_ < shared_->options.away) return;
    tried_ = true;
    const std::lock_guard lock(shared_->mutex);
    if (shared_->source != nullptr) shared_->source->Stale(error.what);
  }

  // What the file says, or that it was refused.
  void Settle() {
    tried_ = true;
    const std::lock_guard lock(shared_->mutex);
    if (shared_->source == nullptr) return;
    verdict_.empty() ? shared_->source->Ok() : shared_->source->Refused(verdict_);
  }

  void Take(const std::string& text) {
    verdict_.clear();
    auto requests = Check(text);
    if (!requests) {
      verdict_ = std::move(requests).error().what;
      return;
    }
    const std::lock_guard lock(shared_->mutex);
    if (shared_->source == nullptr) return;
    auto checked = CheckAll(*requests);
    if (!checked) {
      verdict_ = std::move(checked).error().what;
      return;
    }
    Apply(*requests);
  }

  struct Asked {
    WorkerRequest request;
    std::string origin;  // "/etc/workers.yaml:12"
  };
  using Requests = std::vector<Asked>;

  Result<Requests> Check(const std::string& text) const {
    TRY(const auto entries, ParseWorkersFile(shared_->path, text));
    Requests requests;
    std::map<std::string, std::string> named;
    for (const WorkerEntry& entry : entries) {
      auto url = Url::Parse(entry.url);
      if (!url) return std::unexpected(std::move(url).error().In(entry.origin));
      const auto [first, fresh] = named.emplace(url->ToString(), entry.origin);
      if (!fresh) {
        return Fail(Blame::kCaller, "{}: worker '{}' is already named by {}; remove one of them",
                    entry.origin, first->first.substr(0, 100), first->second);
      }
      auto filled = shared_->defaults.Fill(RequestOf(entry, WorkerRequest::From::kOutside));
      if (!filled) return std::unexpected(std::move(filled).error().In(entry.origin));
      filled->url = first->first;
      requests.push_back({*std::move(filled), entry.origin});
    }
    return requests;
  }

  // Both with the mutex held.
  Result<void> CheckAll(const Requests& requests) const {
    for (const Asked& asked : requests) {
      auto checked = shared_->source->Check(ClaimOf(asked));
      if (!checked) return std::unexpected(std::move(checked).error().In(asked.origin));
    }
    return {};
  }

  void Apply(const Requests& requests) {
    std::set<WorkerId> named;
    for (const Asked& asked : requests) {
      named.insert(WorkerId::OfUrl(asked.request.url));
      const auto put = shared_->source->Put(ClaimOf(asked));
      // Something else has changed since the check. What it was before stays.
      if (!put) verdict_ = Error(put.error()).In(asked.origin).what;
    }
    for (const WorkerId id : shared_->source->Workers()) {
      if (!named.contains(id)) shared_->source->Drop(id, "its file does not name it any more");
    }
  }

  static Claim ClaimOf(const Asked& asked) {
    return {.entry = asked.request, .because = {}, .place = {}};
  }

  const std::shared_ptr<Shared> shared_;
  std::optional<FileStamp> seen_;  // of the text that was taken or refused
  std::string verdict_;            // why it was refused; empty: it was taken
  TimePoint taken_at_{};           // or refused
  std::optional<TimePoint> away_since_;
  bool tried_ = false;  // an outcome was reported
};

Result<std::unique_ptr<FileSource>> FileSource::Create(const WorkerRequest& entry, Muster& muster,
                                                       Log& log, FileSourceOptions options) {
  TRY(FileUrl url, FileUrl::Parse(entry.url));
  TRY(SourceDefaults defaults, SourceDefaults::Of(entry));
  auto shared = std::make_shared<Shared>(std::move(url), std::move(defaults), log, options);
  shared->source = muster.Open(entry.url, Muster::Rank::kFound);
  return std::unique_ptr<FileSource>(new FileSource(std::move(shared)));
}

void FileSource::Start() {
  thread_ = std::thread([watch = std::make_shared<Watch>(shared_)] { watch->Run(); });
}

FileSource::~FileSource() {
  std::unique_lock lock(shared_->mutex);
  shared_->source.reset();
  shared_->changed.notify_all();
  if (!thread_.joinable()) return;
  constexpr Duration kPatience = std::chrono::seconds(1);
  const bool done = shared_->changed.wait_for(lock, kPatience, [&] { return shared_->done; });
  lock.unlock();
  done ? thread_.join() : thread_.detach();
}

}  // namespace fathom
