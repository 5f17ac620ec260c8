// The subcommands. Each returns the exit status of the process.
#pragma once

#include "base/exit_status.h"
#include "base/log.h"
#include "config/settings.h"
#include "config/sources.h"

namespace fathom {

int RunServe(const Settings& settings, const Environment& environment, Log& log);
int RunMock(const Settings& settings, Log& log);
int RunDemo(const Settings& settings, Log& log);
int RunListen(const Settings& settings);
int RunTokenize(const Settings& settings);
int RunDoctor(const Settings& settings);
int RunLint(const Settings& settings);
int RunReady(const Settings& settings);
int RunRegister(const Settings& settings, const Environment& environment, Log& log);
int RunBench(std::span<const std::string_view> args);
int RunDocs(std::span<const std::string_view> args);
int RunCompletion(std::span<const std::string_view> args);

// The names that `fathom docs` lists, sorted. They point into the program text.
std::vector<std::string_view> PageNames();

}  // namespace fathom
