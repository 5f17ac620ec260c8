#include "config/origin.h"

#include <fmt/format.h>

namespace fathom {

Origin Origin::Flag(std::string_view name) {
  return {Source::kFlag, fmt::format("--{}", Shown(name)), ""};
}

Origin Origin::Variable(std::string_view variable) {
  return {Source::kVariable, Shown(variable), ""};
}

Origin Origin::Key(std::string_view file, int line, std::string_view key) {
  return {Source::kFile, Shown(key), fmt::format("{}:{}", file, line)};
}

std::string Origin::ToString() const {
  switch (source_) {
    case Source::kFlag:
      return "flag " + name_;
    case Source::kVariable:
      return "environment " + name_;
    case Source::kFile:
      break;
  }
  return line_;
}

std::string Origin::Spelled() const {
  return source_ == Source::kFile ? fmt::format("{}: {}", line_, name_) : name_;
}

std::string Origin::SpelledHere(std::string_view option_name) const {
  switch (source_) {
    case Source::kFlag:
      return fmt::format("--{}", option_name);
    case Source::kVariable:
      return EnvironmentNameOf(option_name);
    case Source::kFile:
      break;
  }
  return std::string(option_name);
}

Error Origin::Refuse(std::string_view problem) const {
  return {Blame::kCaller, fmt::format("{}: {}", Spelled(), problem)};
}

Error Origin::Refuse(const Option& option, std::string_view value, std::string_view problem) const {
  if (option.secret()) return Refuse(problem);
  if (source_ == Source::kFile) {
    return {Blame::kCaller, fmt::format("{}: '{}' {}", Spelled(), Shown(value), problem)};
  }
  return {Blame::kCaller, fmt::format("{}={}: {}", Spelled(), Shown(value), problem)};
}

std::string Shown(std::string_view input) {
  constexpr size_t kLongest = 100;
  std::string shown(input.substr(0, kLongest));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  if (input.size() > kLongest) shown += "...";
  return shown;
}

}  // namespace fathom
