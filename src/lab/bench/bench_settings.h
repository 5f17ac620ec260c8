// What was this benchmark asked for? NAME=VALUE words against a table of what there is.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"

namespace fathom {

struct BenchSetting {
  std::string_view name;
  std::variant<uint32_t*, uint64_t*, double*, std::string*, bool*> value;  // where it goes
  // Of numbers.
  double least = 1;
  double most = 1e9;
};

// Each word sets one of them; an error names the first word that does not.
Result<void> ReadSettings(std::span<const std::string_view> words,
                          std::span<const BenchSetting> settings);

// Prints what is wrong, and how the benchmark is called. The exit status of the command.
int RefuseBench(std::string_view what, std::string_view usage);

}  // namespace fathom
