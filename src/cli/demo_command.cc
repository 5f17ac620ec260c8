// Two ways of choosing a worker side by side: routers, mock engines and simulated users in one
// process, with a live view.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "cli/command.h"
#include "io/net/signals.h"
#include "lab/demo/demo_screen.h"
#include "lab/demo/demo_side.h"
#include "lab/demo/terminal_keys.h"
#include "lab/mock/mock_options.h"

namespace fathom {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(50);  // keys are read that often
constexpr Duration kBetweenDrawings = std::chrono::milliseconds(250);

using Sides = std::vector<std::unique_ptr<DemoSide>>;

Result<Sides> StartSides(const Settings& settings, Log& log) {
  Sides sides;
  const std::string& mode = settings.Choice("router-mode");
  TRY(auto shown, DemoSide::Start(settings, mode, settings.Integer("port"), log));
  sides.push_back(std::move(shown));
  const std::string& other = settings.Choice("compare");
  if (other == "none") return sides;
  TRY(auto compared, DemoSide::Start(settings, other, 0, log));
  sides.push_back(std::move(compared));
  return sides;
}

DemoMoment Collect(const Sides& sides, const Settings& settings, Duration elapsed,
                   const SideMoment& (DemoSide::*look)(Duration)) {
  DemoMoment moment{.elapsed = elapsed};
  moment.people = static_cast<size_t>(settings.Integer("concurrency"));
  for (const auto& side : sides) moment.sides.push_back((*side.*look)(elapsed));
  return moment;
}

// When the fault begins and ends without a key. Nothing: never.
struct Script {
  std::optional<Duration> break_at;
  std::optional<Duration> repair_at;

  explicit Script(const Settings& settings)
      : break_at(TimeOf(settings, "break-after")), repair_at(TimeOf(settings, "repair-after")) {}

  static std::optional<Duration> TimeOf(const Settings& settings, std::string_view name) {
    const Duration time = settings.Time(name);
    return time > Duration::zero() ? std::optional(time) : std::nullopt;
  }
  // Once each.
  void Act(DemoSide& side, Duration elapsed) {
    if (break_at && elapsed >= *break_at) side.Break(elapsed);
    if (break_at && elapsed >= *break_at) break_at.reset();
    if (repair_at && elapsed >= *repair_at) side.Repair(elapsed);
    if (repair_at && elapsed >= *repair_at) repair_at.reset();
  }
};

// True: the user wants to leave.
bool Obey(const std::string& keys, DemoSide& side, Duration elapsed) {
  for (const char key : keys) {
    if (key == 'b') side.Break(elapsed);
    if (key == 'r') side.Repair(elapsed);
    if (key == 'q') return true;
  }
  return false;
}

// Draws until the time limit, the key q or a signal. True if it was one of the latter two.
bool Watch(const Sides& sides, const Settings& settings, DemoScreen& screen, TimePoint begun) {
  const TerminalKeys keys(screen.live() ? STDIN_FILENO : -1);
  screen.set_keys(keys.active());
  Script script(settings);
  const auto elapsed = [begun] { return Duration(std::chrono::steady_clock::now() - begun); };
  const int64_t seconds = settings.Integer("seconds");
  const Duration limit = seconds == 0 ? Duration::max() : std::chrono::seconds(seconds);
  Duration next_drawing{};
  while (elapsed() < limit) {
    const std::string pressed = keys.Take();
    if (Obey(pressed, *sides[0], elapsed())) return true;
    script.Act(*sides[0], elapsed());
    if (elapsed() >= next_drawing || !pressed.empty()) {
      screen.Draw(Collect(sides, settings, elapsed(), &DemoSide::Look));
      next_drawing = elapsed() + kBetweenDrawings;
    }
    const Duration left = std::max(limit - elapsed(), Duration::zero());
    if (WaitForSignal(std::min(kTick, left)) != 0) return true;
  }
  return false;
}

// Why these settings cannot be; empty if they can.
std::string ProblemOf(const Settings& settings) {
  const std::string& mode = settings.Choice("router-mode");
  if (mode == "direct") {
    return "router-mode direct needs a client that names its worker; the demo has none";
  }
  const Script script(settings);
  const bool events = mode == "kv" && settings.Choice("profile") != kPaced;
  if (script.break_at && !events) {
    return "break-after needs KV events: router-mode kv and another profile than paced";
  }
  if (script.repair_at && (!script.break_at || *script.repair_at <= *script.break_at)) {
    return "repair-after must be later than break-after";
  }
  return "";
}

// Log records would be written into the picture, so they wait until it is gone.
class HeldLog {
 public:
  HeldLog(Log& log, LogLevel level, bool hold) : log_(&log) {
    if (!hold) return;
    fd_ = ::memfd_create("demo log", MFD_CLOEXEC);
    if (fd_ < 0) return;
    held_.emplace(fd_, level);
    log_ = &*held_;
  }
  ~HeldLog() {
    Release();
    if (fd_ >= 0) ::close(fd_);
  }
  HeldLog(const HeldLog&) = delete;
  HeldLog& operator=(const HeldLog&) = delete;

  Log& log() const { return *log_; }

  // Writes what was held. Records may come while it does: each has its place in the file.
  void Release() {
    std::array<char, 4096> part{};
    for (ssize_t n = 0; (n = ::pread(fd_, part.data(), part.size(), released_)) > 0;) {
      released_ += n;
      if (::write(STDERR_FILENO, part.data(), static_cast<size_t>(n)) != n) return;
    }
  }

 private:
  int fd_ = -1;
  off_t released_ = 0;
  std::optional<Log> held_;
  Log* log_;
};

// Every turn must have been answered, and at least one taken, unless a signal ended the demo.
int Judge(const Sides& sides, bool interrupted, Log& log) {
  bool fine = true;
  for (const auto& side : sides) {
    const ConversationReport& report = side->report();
    if (report.errors > 0) {
      log.Error("Some turns failed", {{"first_problem", report.first_problem}});
    }
    fine = fine && report.errors == 0 && (interrupted || report.completed > 0);
  }
  return fine ? kExitFine : kExitFailed;
}

}  // namespace

int RunDemo(const Settings& settings, Log& log) {
  if (const std::string problem = ProblemOf(settings); !problem.empty()) {
    log.Error(problem);
    return kExitUsage;
  }
  DemoScreen screen(STDOUT_FILENO);
  HeldLog held(log, *ParseLogLevel(settings.Choice("log-level")),
               screen.live() && ::isatty(STDERR_FILENO) == 1);
  const auto sides = StartSides(settings, held.log());
  if (!sides) {
    log.Error(sides.error().what);
    return sides.error().blame == Blame::kCaller ? kExitUsage : kExitFailed;
  }
  for (const auto& side : *sides) side->BeginConversations(settings);
  const TimePoint begun = std::chrono::steady_clock::now();
  const bool interrupted = Watch(*sides, settings, screen, begun);
  const Duration elapsed = std::chrono::steady_clock::now() - begun;
  screen.Leave();
  held.Release();  // before the summary, which is to be the last thing on the screen
  screen.Finish(Collect(*sides, settings, elapsed, &DemoSide::Conclude));
  return Judge(*sides, interrupted, log);
}

}  // namespace fathom
