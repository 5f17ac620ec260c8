// Which added tokens stand in a text, and where? The leftmost first, of those that begin at the
// same place the longest; what it may touch (single_word) and what it takes along (lstrip, rstrip)
// is up to each of them.
//
// Threads  Immutable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace fathom {

class AddedTokenMatcher {
 public:
  // `contents[i]` is the text that stands for `tokens[i]`. Of equal ones the first counts, and
  // empty ones never match.
  AddedTokenMatcher(std::vector<AddedToken> tokens, std::vector<std::string> contents);

  bool empty() const { return entries_.empty(); }
  // A piece of text that ends with a line and one that begins with a letter or a digit can be
  // searched by themselves.
  bool keeps_lines_apart() const { return keeps_lines_apart_; }

  // Appends the parts of `text`, in order and without gaps.
  void Split(std::string_view text, std::vector<TextPiece>& out) const;

 private:
  struct Entry {
    std::string content;
    size_t place;
    AddedToken token;
  };
  struct Range {
    uint32_t begin = 0;
    uint32_t end = 0;
  };

  // Where one may begin, from `at` on.
  size_t NextStart(std::string_view text, size_t at) const;
  // The longest one at the beginning of `text`; nullptr: none.
  const Entry* Longest(std::string_view text) const;

  std::vector<Entry> entries_;         // by content
  std::array<Range, 256> starting_{};  // those that begin with a byte
  std::optional<char> only_start_;     // the byte that all begin with: most models have "<"
  bool keeps_lines_apart_ = true;
};

}  // namespace fathom
