#include <fmt/format.h>
#include <signal.h>

#include "app/command.h"
#include "app/frontend.h"
#include "config/help.h"

namespace fathom {

int RunServe(const Settings& settings, const Environment& environment, Log& log) {
  if (settings.Flag("print-config")) {
    fmt::print("{}", PrintConfig(settings));
    return kExitFine;
  }
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
    if (signal == SIGHUP) (*frontend)->ReloadCertificates();
    if (signal == SIGTERM || signal == SIGINT) break;
  }
  log.Info("Draining: finishing what is in flight, refusing new work",
           {{"in_flight", (*frontend)->context().admission.inside()}});
  const auto asked_again = [] { return WaitForSignal(Duration::zero()) != 0; };
  const bool clean = (*frontend)->Drain(settings.Time("drain-timeout"), asked_again);
  if (!clean) {
    log.Warn("Stopping with requests in flight",
             {{"in_flight", (*frontend)->context().admission.inside()}});
  }
  (*frontend)->Stop();
  log.Info("Stopped");
  return kExitFine;
}

}  // namespace fathom
