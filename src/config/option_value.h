// What does this text mean for that option?
//
// Errors  The error text completes "VALUE ...": "must be between 0 and 65535". The caller adds the
//         place of the value in front (config/origin.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "config/option.h"

namespace fathom {

// Flag, integer, number, duration, bytes, text (choice, secret), list (secret list).
using OptionValue =
    std::variant<bool, int64_t, double, Duration, uint64_t, std::string, std::vector<std::string>>;

Result<OptionValue> ParseValue(const Option& option, std::string_view text);

// The value of an option that is not set.
OptionValue DefaultValue(const Option& option);

// "250ms", "5s", "2m", "1h", "1d" or "0.25" seconds; nullopt if it is not a duration or too long.
std::optional<Duration> ParseDuration(std::string_view text);

// "64MiB", "64MB", "1024"; nullopt if it is not a size or too large.
std::optional<uint64_t> ParseBytes(std::string_view text);

// In the form that an operator would type: "10m", "192MiB". A list is separated by spaces. Secrets
// become "(set)" or "(unset)".
std::string FormatValue(const Option& option, const OptionValue& value);

// "0 to 65535", "50ms to 1h", "text, json"; empty if every value is allowed.
std::string FormatRange(const Option& option);

}  // namespace fathom
