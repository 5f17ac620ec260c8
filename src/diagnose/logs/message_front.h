// Where does a line's own message begin, and does it begin with words that we know?
//
// In front of it stand what loggers and collectors add: times, levels, targets, spans, the names of
// pods. Anything else is the message, and known words in the middle of one say nothing: they may be
// a prompt's.
#pragma once

#include <optional>
#include <string_view>

#include "diagnose/logs/log_phrases.h"

namespace fathom {

struct Opening {
  std::optional<Phrase> phrase;
  bool has_path = false;  // a target with ::, as in "dynamo_llm::kv_router: ", is in front of it
};

Opening OpeningOf(std::string_view message);

}  // namespace fathom
