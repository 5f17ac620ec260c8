#include "config/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"

namespace fathom {
namespace {

constexpr size_t kWidth = 100;
constexpr size_t kHelpColumn = 32;

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

// Appends text at the help column, the first line after what stands there already.
void AppendWrapped(std::string& out, size_t column, std::string_view text) {
  for (const std::string_view word : SplitAny(text, " ")) {
    if (column > kHelpColumn && column + 1 + word.size() > kWidth) {
      out += '\n';
      column = 0;
    }
    if (column < kHelpColumn) {
      out.append(kHelpColumn - column, ' ');
      column = kHelpColumn;
    } else if (column > kHelpColumn) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  out += '\n';
}

void AppendOption(std::string& out, const Option& option) {
  const std::string usage = Usage(option);
  out += usage;
  size_t column = usage.size();
  if (column + 2 > kHelpColumn) {
    out += '\n';
    column = 0;
  }
  AppendWrapped(out, column, Meaning(option));
  AppendWrapped(out, 0, Sources(option));
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
      return "Pretends to be an inference engine.";
    case Command::kDemo:
      return "Runs a router, mock workers and traffic in one process.";
    case Command::kListen:
      return "Shows the KV events of engines as they come, with times in UTC.";
    case Command::kTokenize:
      return "Shows the prompt of a chat, its tokens and the keys of its blocks, as serve sees "
             "them.";
    case Command::kDoctor:
      return "Finds out why cache-aware routing does not work, and proposes what would mend it.";
    case Command::kLint:
      return "Checks deployment files for settings that keep cache-aware routing from working.";
  }
  CHECK(false);
}

std::string HelpText(Command command) {
  const Option* const taker = PositionalOption(command);
  std::string out =
      fmt::format("fathom {} [options]{}{}\n\n{}\n", NameOf(command), taker != nullptr ? " " : "",
                  taker != nullptr ? taker->Placeholder() : "", SummaryOf(command));
  for (size_t i = 0; i < kOptionSections; ++i) {
    const auto section = static_cast<OptionSection>(i);
    bool first = true;
    for (const Option& option : Options()) {
      if (!option.BelongsTo(command) || option.section != section) continue;
      if (std::exchange(first, false)) out += fmt::format("\n{}\n", NameOf(section));
      AppendOption(out, option);
    }
  }
  out +=
      "\nTimes are written 250ms, 5s, 2m, 1h or as plain seconds; sizes 64MiB, 64MB or as plain "
      "bytes.\nA flag beats FATHOM_*, then DYN_*, then the YAML file, then the default.\n";
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
