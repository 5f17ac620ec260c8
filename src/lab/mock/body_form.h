// Has this body the form that an engine's own description of it demands?
//
// Types, required members and, for TensorRT-LLM, members that it does not know; with Pydantic's
// leniency: "5", 5.0 and true are integers. Members whose names begin with mock_ are the mock's.
//
// Cost    One pass over the body, which keeps its members for who reads them next; a look-up for
//         each of them. Texts are made only for a body that is refused.
// Errors  The engine's answer, in its words.
#pragma once

#include <expected>
#include <optional>
#include <string_view>
#include <vector>

#include "codec/json_scan.h"
#include "io/http/server_connection.h"
#include "lab/mock/engine_words.h"
#include "lab/mock/mock_options.h"

namespace fathom {

using BodyMembers = std::vector<JsonScanner::Member>;

// The values, raw; of a name that occurs twice the last. Empty: there is none.
std::string_view MemberNamed(const BodyMembers& members, std::string_view name);
// The same, and empty where it is null.
std::string_view ValueNamed(const BodyMembers& members, std::string_view name);

bool IsJsonType(std::string_view content_type);

std::expected<BodyMembers, Answer> ReadMembers(MockedEngine engine, MockRoute route,
                                               std::string_view body);
std::optional<Answer> CheckForm(MockedEngine engine, MockRoute route, const BodyMembers& members,
                                std::string_view body);

// What Pydantic makes of a value that it has accepted.
std::optional<double> NumberIn(std::string_view raw);
bool FlagIn(std::string_view raw);

}  // namespace fathom
