// Bytes as base64 text and back (RFC 4648, the common alphabet).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fathom {

std::string EncodeBase64(std::string_view bytes);

// Whitespace is skipped; the padding may be missing. nullopt if the text is not base64.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace fathom
