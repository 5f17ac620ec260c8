// Which values did the operator set?
//
// Every option of one command has a value here, from the source with the highest precedence, and
// the name of that source. A name that the command does not have, or a getter of the wrong type, is
// a bug and stops the process.
//
// Threads  Immutable once loaded; share it by const reference.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "config/option.h"
#include "config/option_value.h"

namespace fathom {

// One worker, or a source of workers, as it is written. Values set here override the engine's
// reports.
struct WorkerEntry {
  std::string url;
  std::optional<std::string> kv_events;
  std::optional<std::string> kv_events_replay;
  std::optional<std::string> kv_events_topic;
  std::optional<std::string> api_key_env;  // the variable that holds the key, not the key
  std::optional<std::string> ca_file;
  std::optional<std::string> role;  // prefill, decode, both
  std::map<std::string, std::string> labels;
  std::string origin;  // "flag --worker-urls", "config.yaml:12"
};

// An option that was set by the name that it had before. All as the operator would type it.
struct FormerNameUse {
  std::string former;      // "--old-name", "FATHOM_OLD_NAME", "old_name"
  std::string now;         // "--new-name", "FATHOM_NEW_NAME", "new-name"
  std::string origin;      // "flag --old-name", "environment FATHOM_OLD_NAME", "config.yaml:12"
  std::string removed_in;  // "0.2.0"
};

class Settings {
 public:
  // The defaults. Programs use LoadSettings (config/sources.h).
  explicit Settings(Command command);

  Command command() const { return command_; }

  bool Flag(std::string_view name) const;
  int64_t Integer(std::string_view name) const;
  double Number(std::string_view name) const;
  Duration Time(std::string_view name) const;
  uint64_t Bytes(std::string_view name) const;
  const std::string& Text(std::string_view name) const;
  const std::string& Choice(std::string_view name) const;
  const std::vector<std::string>& List(std::string_view name) const;
  const std::vector<std::string>& Files(std::string_view name) const;
  // Separate from Text and List, so that every use of a key can be found. Empty means none.
  const std::string& Secret(std::string_view name) const;
  const std::vector<std::string>& Secrets(std::string_view name) const;

  // "default", "flag --port", "environment DYN_HTTP_PORT", "config.yaml:12".
  const std::string& OriginOf(std::string_view name) const;
  // In the form of FormatValue: secrets hidden.
  std::string Shown(std::string_view name) const;

  const std::vector<WorkerEntry>& workers() const { return workers_; }
  // To be reported at the start.
  const std::vector<FormerNameUse>& former_names() const { return former_names_; }

  void Set(const Option& option, OptionValue value, std::string origin);
  // Refuses a URL with an unsupported scheme, and one that is already present.
  Result<> AddWorker(WorkerEntry entry);
  void AddFormerName(FormerNameUse use) { former_names_.push_back(std::move(use)); }

 private:
  struct Setting {
    const Option* option;
    OptionValue value;
    std::string origin;
  };

  const Setting& Find(std::string_view name) const;
  template <class T>
  const T& Get(std::string_view name, OptionType type) const;

  Command command_;
  std::map<std::string_view, Setting, std::less<>> settings_;
  std::vector<WorkerEntry> workers_;
  std::vector<FormerNameUse> former_names_;
};

// Checks that involve several options, or the form of a text.
Result<> Validate(const Settings& settings);

}  // namespace fathom
