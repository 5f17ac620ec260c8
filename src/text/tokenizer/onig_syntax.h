// Oniguruma's expressions (what tokenizer.json files are written in) in PCRE2's words.
//
// The two agree on most of the syntax. What they read differently is put in other words (\s, \w,
// \h, \v, anchors, scripts), and what cannot be, or is rare enough not to matter, is refused.
//
// Errors  kCaller; `what` begins with "not supported: ".
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace fathom {

Result<std::string> PcreOfOnig(std::string_view pattern);

}  // namespace fathom
