// The few members of a request body that routing needs. The body itself is passed on untouched.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace fathom {

struct RequestFields {
  std::string model;  // empty if the request names none
  bool stream = false;
};

// Checks that the body is one JSON object. Where a member is repeated the last one counts, as it
// does for the engines.
Result<RequestFields> ReadRequestFields(std::string_view body);

}  // namespace fathom
