// The subcommands. Each returns the exit status of the process.
#pragma once

#include "base/log.h"
#include "config/settings.h"
#include "config/sources.h"

namespace fathom {

constexpr int kExitFine = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUnseen = 2;  // doctor, lint: could not look
constexpr int kExitUsage = 78;  // EX_CONFIG: wrong usage or configuration

int RunServe(const Settings& settings, const Environment& environment, Log& log);
int RunMock(const Settings& settings, Log& log);
int RunDemo(const Settings& settings, Log& log);
int RunListen(const Settings& settings);
int RunTokenize(const Settings& settings);
int RunDoctor(const Settings& settings);
int RunLint(const Settings& settings);
int RunBench(std::span<const std::string_view> args);
int RunDocs(std::span<const std::string_view> args);

// Signals are taken by the thread that waits for them, here, and by no other. Call before any
// thread is started.
void BlockSignals();
// The next of SIGINT, SIGTERM and SIGHUP; 0 if none came in time.
int WaitForSignal(Duration patience);

}  // namespace fathom
