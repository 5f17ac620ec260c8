#include "router/gateway/response_sequence.h"

#include <algorithm>
#include <charconv>

namespace fathom {

// The last number counts. Inside a text the word does not match, because its quotes are escaped
// there.
void ResponseSequence::Read(std::string_view events) {
  constexpr std::string_view kName = R"("sequence_number":)";
  for (size_t at = events.rfind(kName); at != events.npos;
       events = events.substr(0, at), at = events.rfind(kName)) {
    std::string_view digits = events.substr(at + kName.size());
    digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
    uint64_t number = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (read.ec != std::errc() || number == UINT64_MAX) continue;
    next_ = number + 1;
    return;
  }
}

}  // namespace fathom
