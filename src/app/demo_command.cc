// Two ways of choosing a worker beside each other: routers, mock engines and people in
// conversation in one process, with a live view.
#include <unistd.h>

#include "app/command.h"
#include "app/demo_side.h"
#include "app/demo_view.h"

namespace fathom {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(250);

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

// Draws until time is up or a signal comes. True if it was a signal.
bool Watch(const Sides& sides, const Settings& settings, DemoScreen& screen, TimePoint begun) {
  const auto elapsed = [begun] { return Duration(std::chrono::steady_clock::now() - begun); };
  const int64_t seconds = settings.Integer("seconds");
  const Duration limit = seconds == 0 ? Duration::max() : std::chrono::seconds(seconds);
  while (elapsed() < limit) {
    screen.Draw(Collect(sides, settings, elapsed(), &DemoSide::Look));
    const Duration left = std::max(limit - elapsed(), Duration::zero());
    if (WaitForSignal(std::min(kTick, left)) != 0) return true;
  }
  return false;
}

// Every turn must have been answered, and somebody must have taken one, unless we were told to end.
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
  if (settings.Choice("router-mode") == "direct") {
    log.Error("router-mode direct needs a client that names its worker; the demo has none");
    return kExitUsage;
  }
  const auto sides = StartSides(settings, log);
  if (!sides) {
    log.Error(sides.error().what);
    return sides.error().blame == Blame::kCaller ? kExitUsage : kExitFailed;
  }
  for (const auto& side : *sides) side->BeginConversations(settings);
  DemoScreen screen(STDOUT_FILENO);
  const TimePoint begun = std::chrono::steady_clock::now();
  const bool interrupted = Watch(*sides, settings, screen, begun);
  const Duration elapsed = std::chrono::steady_clock::now() - begun;
  screen.Finish(Collect(*sides, settings, elapsed, &DemoSide::Conclude));
  return Judge(*sides, interrupted, log);
}

}  // namespace fathom
