// What does it cost to turn a text into tokens, and a chat of which most is known already?
#pragma once

#include <span>
#include <string_view>

namespace fathom {

// fathom bench tokens MODEL_FOLDER [texts=FILE,...] [chats=FILE,...] [runs=3] [block-size=16].
// Files have a JSON value per line: texts, or bodies of requests that come one after the other.
// Prints one JSON object; returns an exit status.
int RunBenchTokens(std::span<const std::string_view> args);

}  // namespace fathom
