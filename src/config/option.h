// Which options exist, and what does each mean?
//
// One table (options.cc). Flags, environment variables, YAML keys, help, validation and
// docs/configuration.md all come from it, so an option that is not in the table does not exist.
// Everything points into the program text and is always valid.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fathom {

// Bits, so that a row of the table can belong to several commands.
enum class Command : uint16_t {
  kServe = 1,
  kMock = 2,
  kDemo = 4,
  kListen = 8,
  kTokenize = 16,
  kDoctor = 32,
  kLint = 64,
  kReady = 128,
  kRegister = 256,
};

inline constexpr Command kCommands[] = {Command::kServe,  Command::kMock,     Command::kDemo,
                                        Command::kListen, Command::kTokenize, Command::kDoctor,
                                        Command::kLint,   Command::kReady,    Command::kRegister};

constexpr unsigned operator|(Command a, Command b) {
  return static_cast<unsigned>(a) | static_cast<unsigned>(b);
}
constexpr unsigned operator|(unsigned a, Command b) { return a | static_cast<unsigned>(b); }

std::string_view NameOf(Command command);

enum class OptionType : uint8_t {
  kFlag,        // --x, --no-x, --x=true
  kInteger,     // whole number
  kNumber,      // 0.2
  kDuration,    // 250ms, 5s, 2m, 1h; a plain number is in seconds
  kBytes,       // 64MiB, 64MB; a plain number is in bytes
  kText,        // anything; empty means none
  kChoice,      // one of a few words
  kList,        // words, separated by commas or spaces, or by repeating the flag
  kFiles,       // paths, one per argument: no character separates them
  kSecret,      // text that is never printed
  kSecretList,  // words that are never printed
};

// The section in help and docs, in this order.
enum class OptionSection : uint8_t {
  kListening,
  kWorkers,
  kRouting,
  kTokens,
  kTrust,
  kReplicas,
  kRelay,
  kLimits,
  kRetries,
  kHealth,
  kSecurity,
  kAnswers,
  kSimulation,
  kFaults,
  kTraffic,
  kEvents,
  kSources,
  kCluster,
  kSizing,
  kOutput,
  kLogging,
};

inline constexpr size_t kOptionSections = 21;

std::string_view NameOf(OptionSection section);

// Dynamo's name. A plain number in that variable is in `unit`; empty: the option's own unit.
struct DynamoName {
  std::string_view variable = {};
  std::string_view unit = {};
};

// Bounds of the value: durations in seconds, sizes in bytes. Both ends are allowed.
struct OptionRange {
  double min = 0;
  double max = std::numeric_limits<double>::infinity();
};

// "max-in-flight" is FATHOM_MAX_IN_FLIGHT.
std::string EnvironmentNameOf(std::string_view option_name);

// A name may have several rows (port has another default for mock than for serve); their commands
// never overlap.
struct Option {
  std::string_view name;  // "max-in-flight": the flag, the YAML key, FATHOM_MAX_IN_FLIGHT
  OptionType type;
  std::string_view fallback;  // the default, as it would be typed
  OptionRange range = {};
  std::span<const std::string_view> choices = {};
  unsigned commands = 0;
  OptionSection section = OptionSection::kListening;
  std::string_view placeholder = {};  // name of the value in help; empty: by the type
  DynamoName dynamo[2] = {};          // unused ones are empty
  std::string_view aliases[2] = {};   // other names of the flag; unused ones are empty
  std::string_view help = {};         // one sentence
  bool positional = false;            // a list that takes the arguments that are not flags
  bool urls = false;                  // a list that ends a word only where another scheme begins

  bool BelongsTo(Command command) const { return (commands & static_cast<unsigned>(command)) != 0; }
  bool secret() const { return type == OptionType::kSecret || type == OptionType::kSecretList; }
  bool list() const {
    return type == OptionType::kList || type == OptionType::kFiles ||
           type == OptionType::kSecretList;
  }
  std::string EnvironmentName() const;   // "FATHOM_MAX_IN_FLIGHT"
  std::string_view Placeholder() const;  // "N"
};

// The table.
std::span<const Option> Options();

// By name or alias; nullptr if the command has no such option.
const Option* FindOption(Command command, std::string_view name);

// The option that takes the arguments that are not flags; nullptr if the command takes none.
const Option* PositionalOption(Command command);

// A command that has an option of that name, for the error message.
std::optional<Command> CommandWith(std::string_view name);

// The most similar name or alias.
std::optional<std::string_view> NearestOption(Command command, std::string_view name);

}  // namespace fathom
