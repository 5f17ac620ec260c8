// Which values does an engine refuse, though they are of the right type?
//
// Temperatures, limits of tokens, empty prompts, settings that contradict each other. What depends
// on the number of a prompt's tokens is not checked here.
//
// Cost  A few look-ups; texts are made only for a request that is refused.
#pragma once

#include <cstdint>
#include <optional>

#include "lab/mock/body_form.h"
#include "lab/mock/engine_words.h"

namespace fathom {

// What is refused before the body's types are checked.
std::optional<Refusal> CheckSettings(MockedEngine engine, MockRoute route,
                                     const BodyMembers& members);
// What is refused once the model is known. `longest` is the model's context, in tokens.
std::optional<Refusal> CheckLimits(MockedEngine engine, MockRoute route, const BodyMembers& members,
                                   uint64_t longest);

}  // namespace fathom
