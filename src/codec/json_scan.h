// Reads the top level of a JSON object in one pass, without building anything.
//
// A router needs three or four members of a body that may be hundreds of megabytes long (a long
// prompt, a list of token ids), and must check that the rest is valid JSON. Parsers that index the
// document first need several times its size in memory; this one needs none.
//
// Errors  kCaller, with the byte offset. Strict RFC 8259; nesting deeper than kMaxDepth is refused.
//         UTF-8 inside strings is not checked; the reader of a value has to.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fathom {

class JsonScanner {
 public:
  static constexpr size_t kMaxDepth = 512;

  struct Member {
    std::string_view key;    // between its quotes, with its escapes
    std::string_view value;  // its exact text: "\"gpt\"", "true", "[1,2]", "{...}"
  };

  explicit JsonScanner(std::string_view document) : in_(document) {}

  // The next member of the object, nullopt after the last one (the whole document has then been
  // checked), or the error in the document.
  Result<std::optional<Member>> Next();

 private:
  std::string_view in_;
  size_t at_ = 0;
  enum class State { kStart, kMembers, kEnd } state_ = State::kStart;
};

// Compares a key after unescaping: "mod\u0065l" equals "model", as it does for the engine.
bool JsonKeyIs(std::string_view raw_key, std::string_view name);

bool JsonKeyStartsWith(std::string_view raw_key, std::string_view prefix);

// The text of a JSON string value (with its quotes); nullopt if the value is not a string, or has
// lone surrogates.
std::optional<std::string> JsonText(std::string_view raw_value);

// Appends the text of a JSON string to `out`; `raw` is what stands between its quotes. False: it
// ends at an invalid escape or a lone surrogate, and the text before it was appended.
bool AppendJsonText(std::string_view raw, std::string& out);

// Walks the elements of an array value that a scanner has returned (so it is known to be valid).
class JsonElements {
 public:
  explicit JsonElements(std::string_view raw_array);
  std::optional<std::string_view> Next();

 private:
  std::string_view in_;
  size_t at_ = 0;
};

}  // namespace fathom
