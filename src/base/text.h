// Small functions on text that several rooms use.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fathom {

// ASCII only: for protocol words, not for human language.
bool EqualsIgnoreCase(std::string_view a, std::string_view b);
std::string_view Trim(std::string_view text);
std::vector<std::string_view> SplitAny(std::string_view text, std::string_view separators);
// URLs of workers, with commas or blanks between them. Hosts and selectors may have commas and
// blanks too, so one ends only where another scheme begins.
std::vector<std::string_view> SplitUrls(std::string_view text);

// Digits only, no sign, no spaces; nullopt on overflow.
std::optional<uint64_t> ParseDecimal(std::string_view text);

// Appends text as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD. What a
// terminal obeys instead of showing is escaped: control characters (C1 too), line and paragraph
// separators, changes of direction.
void AppendJsonString(std::string& out, std::string_view text);

// The same escapes without quotes: line ends, quotes and backslashes stay.
void AppendHarmlessLines(std::string& out, std::string_view text);

// The candidate with the fewest edits from `name`, if it is close enough for a likely typo.
std::optional<std::string_view> Nearest(std::string_view name,
                                        std::span<const std::string_view> candidates);

// Takes the same time wherever the difference is; for secrets.
bool EqualsInConstantTime(std::string_view a, std::string_view b);

}  // namespace fathom
