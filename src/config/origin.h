// Where was this value set?
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "config/option.h"

namespace fathom {

class Origin {
 public:
  static Origin Flag(std::string_view name);          // as typed, without the dashes
  static Origin Variable(std::string_view variable);  // FATHOM_PORT, DYN_HTTP_PORT
  static Origin Key(std::string_view file, int line, std::string_view key);

  // For a column: "flag --port", "environment FATHOM_PORT", "config.yaml:12".
  std::string ToString() const;

  // The option as typed there: "--port", "FATHOM_PORT", "port".
  const std::string& name() const { return name_; }
  // Another name in the spelling of this source.
  std::string SpelledHere(std::string_view option_name) const;

  // The error for a value that was set there: "FATHOM_PORT=70000: must be between 0 and 65535". The
  // value of a secret is left out.
  Error Refuse(const Option& option, std::string_view value, std::string_view problem) const;
  // The same without a value: "--port: needs a value".
  Error Refuse(std::string_view problem) const;

 private:
  enum class Source : uint8_t { kFlag, kVariable, kFile };
  Origin(Source source, std::string name, std::string line)
      : source_(source), name_(std::move(name)), line_(std::move(line)) {}
  std::string Spelled() const;  // "--port", "FATHOM_PORT", "config.yaml:12: port"

  Source source_;
  std::string name_;
  std::string line_;  // "config.yaml:12"; empty unless the origin is a file
};

// Input for a one-line message: control bytes replaced, long text cut.
std::string Shown(std::string_view input);

}  // namespace fathom
