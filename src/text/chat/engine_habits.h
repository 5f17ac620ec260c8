// What an engine has found out, or was told at its start, and what its prompts depend on for this
// reason: they differ between two engines of one kind with one model.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fathom {

// What stands around the thoughts of a model.
struct ThoughtMarks {
  std::string_view before;
  std::string_view after;
};

struct EngineHabits {
  // The template takes system messages between the others. Engines try that with a small chat, and
  // where it fails they put all of them at the front.
  bool takes_inline_system = true;
  // reasoning_effort "none" makes a difference. Else vLLM asks for little thinking in its place.
  bool hears_no_effort = true;
  // SGLang writes what the model thought into the text of its messages, unless it was started
  // without a reasoning parser: then such parts are dropped.
  std::optional<ThoughtMarks> thoughts;
  // The argument of the template that turns thinking on and off; empty if it has none.
  std::string_view thinking_argument;
};

// The marks of SGLang's --reasoning-parser of that name; nothing if there is none, or it is not
// known.
std::optional<ThoughtMarks> MarksOfParser(std::string_view reasoning_parser);

}  // namespace fathom
