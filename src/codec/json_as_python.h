// A JSON document as Python's json.loads reads it, which is how engines read requests: also
// integers of any size, numbers beyond what a double can hold, NaN and Infinity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string_view>

#include "codec/json.h"

namespace fathom {

enum class PythonJsonFault : uint8_t {
  kNotJson,       // Python raises JSONDecodeError, too
  kNotSupported,  // Python reads it, or fails in another way: lone surrogates, thousands of digits
};

// Python's own limit for the digits of an integer.
constexpr size_t kMostPythonDigits = 4300;
// Of lists and objects in each other.
constexpr size_t kMostPythonDepth = 512;

std::expected<Json, PythonJsonFault> JsonAsPython(std::string_view text);

}  // namespace fathom
