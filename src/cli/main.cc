// fathom: the command line.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "base/log_at_crash.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "config/help.h"
#include "config/renamed_options.h"
#include "io/net/signals.h"

// Read by jemalloc at its start. By itself it gives freed pages back only while the program goes on
// allocating: an idle router would keep what a burst of large requests took. A thread of its own
// gives it back some seconds later.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "background_thread:true";
}

namespace fathom {
namespace {

void PrintCommand(std::string_view name, std::string_view summary) {
  const std::string front = fmt::format("  {:<10}  ", name);
  fmt::print("{}{}", front, Wrapped(summary, front.size(), front.size(), TerminalColumns()));
}

void PrintOverview() {
  const std::string what = fmt::format(
      "fathom {}: a KV-cache-aware frontend and router for LLM inference fleets", kVersion);
  fmt::print("{}\n", Wrapped(what, 0, 0, TerminalColumns()));
  fmt::print("usage: fathom COMMAND [OPTION]...\n\n");
  for (const auto& [name, summary] : AllCommands()) PrintCommand(name, summary);
  fmt::print("\n'fathom COMMAND --help' lists the options of a command.\n");
}

int Complain(const std::string& what) {
  fmt::print(stderr, "fathom: {}\n", what);
  return kExitUsage;
}

std::optional<Command> CommandOf(std::string_view name) {
  for (const Command command : kCommands) {
    if (name == NameOf(command)) return command;
  }
  return std::nullopt;
}

int UnknownCommand(std::string_view name) {
  std::vector<std::string_view> names;
  for (const CommandSummary& command : AllCommands()) names.push_back(command.name);
  const auto near = Nearest(name, names);
  return Complain(fmt::format(
      "no such command '{}'{}", name,
      near ? fmt::format("; did you mean '{}'?", *near) : "; 'fathom --help' lists them"));
}

// Thousands of streams need thousands of descriptors; the soft limit is often 1024.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

bool HasLog(Command command) {
  return command == Command::kServe || command == Command::kMock || command == Command::kDemo ||
         command == Command::kRegister;
}

void NoteFormerNames(const Settings& settings) {
  for (const FormerNameUse& use : settings.former_names()) {
    fmt::print(stderr, "fathom: {}\n", FormerNameNote(use));
  }
}

int RunCommand(Command command, std::span<const std::string_view> args) {
  if (AsksForHelp(args)) {
    fmt::print("{}", HelpText(command, TerminalColumns()));
    return kExitFine;
  }
  const Environment environment = EnvironmentOf(environ);
  const auto settings = LoadSettings(command, args, environment, ReadFile);
  if (!settings) return Complain(settings.error().what);
  RaiseDescriptorLimit();
  BlockSignals();
  if (!HasLog(command)) NoteFormerNames(*settings);
  if (command == Command::kListen) return RunListen(*settings);
  if (command == Command::kTokenize) return RunTokenize(*settings);
  if (command == Command::kDoctor) return RunDoctor(*settings);
  if (command == Command::kLint) return RunLint(*settings);
  if (command == Command::kReady) return RunReady(*settings);
  const bool json = command != Command::kDemo && settings->Choice("log-format") == "json";
  const DocsLinks docs(command == Command::kServe ? settings->Text("docs-url") : "");
  const LogFormat format = json ? LogFormat::kJson : LogFormat::kText;
  LogWriter writer(STDERR_FILENO, [format](uint64_t count) { return LostRecord(format, count); });
  const LogAtCrash at_crash(writer);
  Log log(writer, *ParseLogLevel(settings->Choice("log-level")), format, docs);
  WarnOfFormerNames(*settings, log);
  switch (command) {
    case Command::kServe:
      return RunServe(*settings, environment, log);
    case Command::kMock:
      return RunMock(*settings, log);
    case Command::kDemo:
      return RunDemo(*settings, log);
    case Command::kRegister:
      return RunRegister(*settings, environment, log);
    case Command::kListen:
    case Command::kTokenize:
    case Command::kDoctor:
    case Command::kLint:
    case Command::kReady:
      break;  // they have no log
  }
  return kExitFailed;
}

int Main(std::span<const std::string_view> args) {
  if (args.empty() || args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
    PrintOverview();
    return args.empty() ? kExitUsage : kExitFine;
  }
  if (args[0] == "version" || args[0] == "--version") {
    fmt::print("fathom {} ({})\n", kVersion, kCompiler);
    return kExitFine;
  }
  if (args[0] == "docs") return RunDocs(args.subspan(1));
  if (args[0] == "completion") return RunCompletion(args.subspan(1));
  if (args[0] == "bench") return RunBench(args.subspan(1));
  const auto command = CommandOf(args[0]);
  return command ? RunCommand(*command, args.subspan(1)) : UnknownCommand(args[0]);
}

}  // namespace
}  // namespace fathom

int main(int argc, char** argv) {
  const std::vector<std::string_view> args(argv + 1, argv + argc);
  const int status = fathom::Main(args);
  // Coroutines that still wait on a stopped loop are not destroyed; the system frees everything.
  std::fflush(stdout);
  std::_Exit(status);
}
