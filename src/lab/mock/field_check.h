// What does Pydantic say about the members of a body?
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lab/mock/body_form.h"
#include "lab/mock/engine_words.h"
#include "lab/mock/field_rules.h"

namespace fathom {

// In the order of the rules; empty: nothing is wrong.
std::vector<FieldProblem> CheckFields(const FieldRules& rules, MockedEngine engine,
                                      const BodyMembers& members, std::string_view body);

}  // namespace fathom
