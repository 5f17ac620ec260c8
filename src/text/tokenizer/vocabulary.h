// Which token is this text, and which text is this token?
//
// Memory   The texts once, 8 bytes per id, 16 per text.
// Threads  Immutable once filled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokens/token.h"

namespace fathom {

class Vocabulary {
 public:
  static constexpr TokenId kNone = 0xffffffff;

  // False: the id or the text is there already.
  bool Add(TokenId id, std::string_view text);

  // kNone: there is none.
  TokenId Find(std::string_view text) const;
  // Nothing: there is none.
  std::optional<std::string_view> TextOf(TokenId id) const;

  size_t size() const { return size_; }
  // The largest id, and one.
  size_t id_limit() const { return spans_.size(); }

 private:
  struct Slot {
    uint32_t tag = 0;  // the upper half of the hash
    TokenId id = kNone;
  };
  struct Span {
    uint32_t offset = 0;
    uint32_t length = kNoLength;
  };
  static constexpr uint32_t kNoLength = 0xffffffff;

  std::string_view Text(TokenId id) const {
    return std::string_view(texts_).substr(spans_[id].offset, spans_[id].length);
  }
  void Place(TokenId id);
  void Grow();

  std::string texts_;
  std::vector<Span> spans_;
  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace fathom
