// A text in pieces: split, rsplit, splitlines, partition.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace fathom {

// `separator` missing: at runs of whitespace. `most`: how many cuts, or any number if negative.
std::vector<std::string_view> SplitLeft(std::string_view text,
                                        std::optional<std::string_view> separator, int64_t most);
std::vector<std::string_view> SplitRight(std::string_view text,
                                         std::optional<std::string_view> separator, int64_t most);
std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends);

}  // namespace fathom
