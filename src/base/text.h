// Small questions about text that several rooms ask.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fathom {

// ASCII only: protocol words, never human language.
bool EqualsIgnoreCase(std::string_view a, std::string_view b);
std::string_view Trim(std::string_view text);
std::vector<std::string_view> SplitAny(std::string_view text, std::string_view separators);

// Digits only, no sign, no spaces; nothing on overflow.
std::optional<uint64_t> ParseDecimal(std::string_view text);

// Appends text as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD.
void AppendJsonString(std::string& out, std::string_view text);

// The candidate that is fewest edits away from name, if it is near enough to be a likely typo.
std::optional<std::string_view> Nearest(std::string_view name,
                                        std::span<const std::string_view> candidates);

// Takes the same time wherever the difference is; for secrets.
bool EqualsInConstantTime(std::string_view a, std::string_view b);

}  // namespace fathom
