// Where is a response that this router does not remember?
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/ids.h"

namespace fathom {

struct SearchResult {
  enum class Kind : uint8_t {
    kFound,       // `worker` has it, or is the only one that may have it
    kNowhere,     // no worker has it
    kAnyone,      // it cannot be found out: several workers have no way to ask them
    kUnanswered,  // several workers that may have it did not answer
    kOverload,    // too many are being looked for
  };
  Kind kind = Kind::kNowhere;
  WorkerId worker = {};
  bool operator==(const SearchResult&) const = default;
};
constexpr size_t kSearchResults = 5;
std::string_view Name(SearchResult::Kind kind);

}  // namespace fathom
