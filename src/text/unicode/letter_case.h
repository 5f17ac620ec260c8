// Which letters are large, which are small, and what does a text look like in the other case?
//
// As Python's str answers: full mappings (one letter may become several), a sigma at the end of a
// word, words as runs of letters. Bytes that are not UTF-8 stay as they are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fathom {

bool IsSpace(uint32_t value);
bool IsLetter(uint32_t value);
bool IsDigit(uint32_t value);
bool IsNumeric(uint32_t value);
bool IsUpper(uint32_t value);
bool IsLower(uint32_t value);
bool IsCased(uint32_t value);
// Whether Python's repr() shows it as it is.
bool IsPrintable(uint32_t value);

std::string ToLower(std::string_view text);
std::string ToUpper(std::string_view text);
// The first letter of each word large, the others small.
std::string ToTitle(std::string_view text);
// The first letter large, the others small.
std::string ToCapitalized(std::string_view text);
std::string ToSwappedCase(std::string_view text);

}  // namespace fathom
