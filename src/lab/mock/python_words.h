// How does Python write this? Engines put its words into their error messages.
//
// Memory  Texts are bounded by what the caller passes in.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fathom {

// repr() of a string: in single quotes, unless it has some and no double ones.
std::string PythonText(std::string_view text);
// str() of a float: 3 is "3.0".
std::string PythonFloat(double value);

// What json.loads() of Python 3.12 says about a document that is none.
struct PythonJsonError {
  std::string message;  // empty: it is one
  size_t position = 0;  // in characters
};
PythonJsonError ExplainJson(std::string_view document);

}  // namespace fathom
