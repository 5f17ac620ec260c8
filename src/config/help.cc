#include "config/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"

namespace fathom {
namespace {

constexpr size_t kHelpColumn = 32;
constexpr size_t kNarrowHelpColumn = 8;
constexpr size_t kNarrow = 72;  // columns of a terminal that has no room for two columns of text

std::string Usage(const Option& option) {
  if (option.type == OptionType::kFlag) return fmt::format("  --[no-]{}", option.name);
  return fmt::format("  --{} {}", option.name, option.Placeholder());
}

std::string Meaning(const Option& option) {
  if (option.type != OptionType::kChoice) return std::string(option.help);
  return fmt::format("{} One of {}.", option.help, fmt::join(option.choices, ", "));
}

// "[8000; FATHOM_PORT, DYN_HTTP_PORT; also --http-port]"
std::string Sources(const Option& option) {
  std::string text = "[";
  if (const std::string value = FormatValue(option, DefaultValue(option));
      !value.empty() && !option.secret()) {
    text += fmt::format("default {}; ", value);
  }
  text += option.EnvironmentName();
  for (const DynamoName& name : option.dynamo) {
    if (!name.variable.empty()) text += fmt::format(", {}", name.variable);
  }
  for (const std::string_view alias : option.aliases) {
    if (!alias.empty()) text += fmt::format("; also --{}", alias);
  }
  return text + "]";
}

void AppendOption(std::string& out, const Option& option, size_t width) {
  const size_t indent = width < kNarrow ? kNarrowHelpColumn : kHelpColumn;
  const std::string usage = Usage(option);
  out += usage;
  size_t column = usage.size();
  if (column + 2 > indent) {
    out += '\n';
    column = 0;
  }
  out += Wrapped(Meaning(option), column, indent, width);
  out += Wrapped(Sources(option), 0, indent, width);
}

std::string WorkerDetails(const WorkerEntry& worker) {
  std::string details;
  const auto add = [&](std::string_view key, const std::optional<std::string>& value) {
    if (value) details += fmt::format(" {}={}", key, *value);
  };
  add("kv_events", worker.kv_events);
  add("kv_events_replay", worker.kv_events_replay);
  add("kv_events_topic", worker.kv_events_topic);
  add("api_key_env", worker.api_key_env);
  add("ca_file", worker.ca_file);
  return details;
}

void AppendWorkers(std::string& out, const std::vector<WorkerEntry>& workers) {
  out += fmt::format("\nworkers: {}\n", workers.size());
  size_t width = 0;
  for (const WorkerEntry& worker : workers) width = std::max(width, worker.url.size());
  for (const WorkerEntry& worker : workers) {
    out += fmt::format("  {:<{}}  {}{}\n", worker.url, width, worker.origin, WorkerDetails(worker));
  }
}

}  // namespace

std::string_view SummaryOf(Command command) {
  switch (command) {
    case Command::kServe:
      return "Routes OpenAI API requests to a fleet of inference engines.";
    case Command::kMock:
      return "Simulates an inference engine.";
    case Command::kDemo:
      return "Runs a router, mock workers and traffic in one process.";
    case Command::kListen:
      return "Shows the KV events of engines as they arrive, with times in UTC.";
    case Command::kTokenize:
      return "Shows the prompt of a chat, its tokens and the keys of its blocks, as serve sees "
             "them.";
    case Command::kDoctor:
      return "Finds out why cache-aware routing does not work, and proposes fixes.";
    case Command::kLint:
      return "Checks deployment files for settings that keep cache-aware routing from working.";
    case Command::kReady:
      return "Asks a running router whether it can route requests; for health checks.";
    case Command::kRegister:
      return "Registers the engine beside it in etcd for as long as the engine is healthy.";
  }
  CHECK(false);
}

std::vector<CommandSummary> AllCommands() {
  std::vector<CommandSummary> commands;
  for (const Command command : kCommands) {
    commands.push_back({NameOf(command), SummaryOf(command)});
  }
  commands.push_back({"bench", "Puts load on an OpenAI endpoint and reports latencies."});
  commands.push_back(
      {"docs", "Prints a page of the documentation; without a name, lists the pages."});
  commands.push_back({"completion", "Prints the completions of a shell: bash, zsh or fish."});
  commands.push_back({"version", "Prints the version."});
  return commands;
}

std::string Wrapped(std::string_view text, size_t column, size_t indent, size_t width) {
  std::string out;
  for (const std::string_view word : SplitAny(text, " ")) {
    if (column > indent && column + 1 + word.size() > width) {
      out += '\n';
      column = 0;
    }
    if (column < indent) {
      out.append(indent - column, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out += '\n';
}

std::string HelpText(Command command, size_t width) {
  const Option* const taker = PositionalOption(command);
  std::string out =
      fmt::format("fathom {} [options]{}{}\n\n", NameOf(command), taker != nullptr ? " " : "",
                  taker != nullptr ? taker->Placeholder() : "");
  out += Wrapped(SummaryOf(command), 0, 0, width);
  for (size_t i = 0; i < kOptionSections; ++i) {
    const auto section = static_cast<OptionSection>(i);
    bool first = true;
    for (const Option& option : Options()) {
      if (!option.BelongsTo(command) || option.section != section) continue;
      if (std::exchange(first, false)) out += fmt::format("\n{}\n", NameOf(section));
      AppendOption(out, option, width);
    }
  }
  out += '\n';
  out += Wrapped(
      "Times are written 250ms, 5s, 2m, 1h or as plain seconds; sizes 64MiB, 64MB or as plain "
      "bytes.",
      0, 0, width);
  out += Wrapped("A flag beats FATHOM_*, then DYN_*, then the YAML file, then the default.", 0, 0,
                 width);
  return out;
}

std::string PrintConfig(const Settings& settings) {
  constexpr size_t kWidestValue = 40;  // longer ones push their own line only
  size_t name_width = 0;
  size_t value_width = 0;
  for (const Option& option : Options()) {
    if (!option.BelongsTo(settings.command())) continue;
    name_width = std::max(name_width, option.name.size());
    value_width = std::max(value_width, std::min(settings.Shown(option.name).size(), kWidestValue));
  }
  std::string out;
  for (const Option& option : Options()) {
    if (!option.BelongsTo(settings.command())) continue;
    out += fmt::format("{:<{}}  {:<{}}  {}\n", option.name, name_width, settings.Shown(option.name),
                       value_width, settings.OriginOf(option.name));
  }
  if (settings.command() == Command::kServe) AppendWorkers(out, settings.workers());
  return out;
}

}  // namespace fathom
