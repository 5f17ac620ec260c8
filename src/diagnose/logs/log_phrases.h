// Which of the lines worth reading is this?
//
// One pass over the bytes, about one look-up in a small table for each: logs are long, and almost
// no line is interesting.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "diagnose/logs/log_facts.h"

namespace fathom {

struct Phrase {
  LogKind kind{};
  size_t at = 0;
};

// The first phrase in the text that tells of something.
std::optional<Phrase> FindPhrase(std::string_view text);
// The one that the text begins with.
std::optional<LogKind> PhraseAt(std::string_view text);

}  // namespace fathom
