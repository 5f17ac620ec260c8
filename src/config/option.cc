#include "config/option.h"

#include <vector>

#include "base/check.h"
#include "base/text.h"

namespace fathom {

std::string_view NameOf(Command command) {
  switch (command) {
    case Command::kServe:
      return "serve";
    case Command::kMock:
      return "mock";
    case Command::kDemo:
      return "demo";
    case Command::kListen:
      return "listen";
    case Command::kTokenize:
      return "tokenize";
    case Command::kDoctor:
      return "doctor";
    case Command::kLint:
      return "lint";
    case Command::kReady:
      return "ready";
    case Command::kRegister:
      return "register";
  }
  CHECK(false);
}

std::string_view NameOf(OptionSection section) {
  constexpr std::string_view kNames[kOptionSections] = {
      "Listening", "Workers",         "Routing",    "Tokens",           "Trust",
      "Replicas",  "Relay",           "Limits",     "Retries",          "Health",
      "Security",  "Answers",         "Simulation", "Faults",           "Traffic",
      "KV events", "What to look at", "Kubernetes", "Model and memory", "Output",
      "Logging"};
  return kNames[static_cast<size_t>(section)];
}

std::string Option::EnvironmentName() const { return EnvironmentNameOf(name); }

std::string EnvironmentNameOf(std::string_view option_name) {
  std::string variable = "FATHOM_";
  for (const char c : option_name) {
    variable += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  }
  return variable;
}

std::string_view Option::Placeholder() const {
  if (!placeholder.empty()) return placeholder;
  switch (type) {
    case OptionType::kFlag:
      return "";
    case OptionType::kInteger:
      return "N";
    case OptionType::kNumber:
      return "X";
    case OptionType::kDuration:
      return "TIME";
    case OptionType::kBytes:
      return "SIZE";
    case OptionType::kText:
      return "TEXT";
    case OptionType::kChoice:
      return "WORD";
    case OptionType::kList:
      return "WORD...";
    case OptionType::kFiles:
      return "FILE...";
    case OptionType::kSecret:
      return "KEY";
    case OptionType::kSecretList:
      return "KEY...";
  }
  CHECK(false);
}

const Option* FindOption(Command command, std::string_view name) {
  if (name.empty()) return nullptr;  // unused aliases are empty
  for (const Option& option : Options()) {
    if (!option.BelongsTo(command)) continue;
    if (option.name == name) return &option;
    for (const std::string_view alias : option.aliases) {
      if (alias == name) return &option;
    }
  }
  return nullptr;
}

const Option* PositionalOption(Command command) {
  for (const Option& option : Options()) {
    if (option.BelongsTo(command) && option.positional) return &option;
  }
  return nullptr;
}

std::optional<Command> CommandWith(std::string_view name) {
  for (const Command command : kCommands) {
    if (FindOption(command, name) != nullptr) return command;
  }
  return std::nullopt;
}

std::optional<std::string_view> NearestOption(Command command, std::string_view name) {
  std::vector<std::string_view> names;
  for (const Option& option : Options()) {
    if (!option.BelongsTo(command)) continue;
    names.push_back(option.name);
    for (const std::string_view alias : option.aliases) {
      if (!alias.empty()) names.push_back(alias);
    }
  }
  return Nearest(name, names);
}

}  // namespace fathom
