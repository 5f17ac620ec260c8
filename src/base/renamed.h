// What was this called before, and how long does Fathom answer to that name?
//
// The rule of docs/compatibility.md: a former name works in the release that renames, and the next
// release that may remove something removes it. Each kind of name has one table of these rows, next
// to the code that reads it: options (config/renamed_options.cc), metrics (`former` in a row of the
// catalogue), error codes (router/gateway/openai_error.cc), pages (cli/renamed_names.cc). The page
// docs/renamed.md is made of them, and cli/renamed_names_test.cc fails while a row is overdue.
//
// Memory   Everything points into the program text and is always valid.
#pragma once

#include <string>
#include <string_view>

namespace fathom {

struct Renamed {
  std::string_view former;
  std::string_view now;
  std::string_view release;  // the first that has the new name: "0.1.0"
};

// The release that no longer knows the former name: the next minor one of 0.x, later the next major
// one. "0.1.0" gives "0.2.0".
std::string RemovedIn(std::string_view release);

// Whether a name that was changed in `release` may still have its row in `version`.
bool KeepsFormerName(std::string_view release, std::string_view version);

}  // namespace fathom
