// Text in one of the four Unicode normal forms.
//
// Errors     None: bytes that are not UTF-8 stay where they are, and the text on both sides of them
//            is normalized by itself.
// Staleness  As old as the Unicode version of utf8proc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fathom {

enum class NormalForm : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

// Whether it is seen at a glance that Normalized() would change nothing: true of most text.
bool IsPlainlyNormal(NormalForm form, std::string_view text);

std::string Normalized(NormalForm form, std::string_view text);

// Each code point in lower case by itself: the final sigma is like any other.
std::string Lowercased(std::string_view text);

}  // namespace fathom
