#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

#include "cli/command.h"
#include "config/help.h"
#include "io/net/signals.h"
#include "router/serve/frontend.h"

namespace fathom {
namespace {

// What stopping may take beyond the time that requests have to finish.
constexpr Duration kStoppingTime = std::chrono::milliseconds(800);
constexpr Duration kLastWords = std::chrono::milliseconds(100);
constexpr Duration kLook = std::chrono::milliseconds(20);

// Ends the process if it does not end by itself: when the time is over, whatever sockets, peers and
// side work do, and at once when another signal comes.
class Departure {
 public:
  Departure(Duration drain, Log& log)
      : log_(log), until_(std::chrono::steady_clock::now() + drain + kStoppingTime) {
    thread_ = std::jthread([this](const std::stop_token& done) { Watch(done); });
  }

 private:
  void Watch(const std::stop_token& done) {
    while (!done.stop_requested()) {
      const int signal = WaitForSignal(kLook);
      if (signal == SIGTERM || signal == SIGINT) Leave("Stopped at once: a second signal came");
      if (std::chrono::steady_clock::now() >= until_) {
        Leave("Stopped without waiting for everything to end: --drain-timeout is over");
      }
    }
  }

  [[noreturn]] void Leave(std::string_view why) {
    log_.Warn(why);
    log_.End(kLastWords);
    std::_Exit(kExitFine);
  }

  Log& log_;
  const TimePoint until_;
  std::jthread thread_;
};

}  // namespace

int RunServe(const Settings& settings, const Environment& environment, Log& log) {
  if (settings.Flag("print-config")) {
    if (const auto checked = Frontend::Check(settings); !checked) {
      log.Error(checked.error().what);
      return kExitUsage;
    }
    fmt::print("{}", PrintConfig(settings));
    return kExitFine;
  }
  std::optional<Departure> departure;  // outlives the frontend, whose end it watches
  auto frontend = Frontend::Create(settings, environment, log);
  if (!frontend) {
    log.Error(frontend.error().what);
    return kExitUsage;
  }
  (*frontend)->Start();
  for (;;) {
    const int signal = WaitForSignal(std::chrono::milliseconds(100));
    if ((*frontend)->refused_to_start()) {
      (*frontend)->Stop();
      return kExitUsage;
    }
    if (signal == SIGHUP) (*frontend)->Reload();
    (*frontend)->ReloadChangedKeys();
    if (signal == SIGTERM || signal == SIGINT) break;
  }
  log.Info("Draining: finishing requests in flight, refusing new ones",
           {{"in_flight", (*frontend)->context().admission.inside()}});
  departure.emplace(settings.Time("drain-timeout"), log);
  const bool clean = (*frontend)->Drain(settings.Time("drain-timeout"));
  if (!clean) {
    log.Warn("Stopping with requests in flight",
             {{"in_flight", (*frontend)->context().admission.inside()}});
  }
  (*frontend)->Stop();
  log.Info("Stopped");
  return kExitFine;
}

}  // namespace fathom
