// Reads the top level of a JSON object in one pass, without building anything.
//
// A router needs three or four members of a body that may be hundreds of megabytes long (a long
// prompt, a list of token ids), and must know that the rest is JSON at all. Parsers that index the
// document first need several times its size in memory; this one needs none.
//
// Errors  kCaller, naming the byte offset. Strict RFC 8259; nesting deeper than kMaxDepth is
// refused.
//         Whether strings are UTF-8 is left to whoever reads them.
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
    std::string_view key;    // between its quotes, escapes as they stand
    std::string_view value;  // its text, exactly: "\"gpt\"", "true", "[1,2]", "{...}"
  };

  explicit JsonScanner(std::string_view document) : in_(document) {}

  // The next member of the object, nothing after the last one (the whole document has then been
  // checked), or what is wrong with the document.
  Result<std::optional<Member>> Next();

 private:
  std::string_view in_;
  size_t at_ = 0;
  enum class State { kStart, kMembers, kEnd } state_ = State::kStart;
};

// Compares a key, escapes and all: "mod\u0065l" is "model", because the engine will think so too.
bool JsonKeyIs(std::string_view raw_key, std::string_view name);

// The text of a JSON string value (with its quotes); nothing if the value is no string, or is one
// that has no text (lone surrogates).
std::optional<std::string> JsonText(std::string_view raw_value);

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
