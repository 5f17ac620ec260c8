// Which text are these tokens? What the model's decoder makes of them, except that bytes stay
// bytes: half a character is not replaced.
//
// Errors   Parse(): kCaller.
// Threads  Immutable.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "codec/json.h"

namespace fathom {

class Decoder {
 public:
  static Result<Decoder> Parse(const Json& json);

  // The text of one token, wherever it stands.
  std::string Piece(std::string_view token) const;
  // Appends the next one; `out` is empty before the first.
  void Append(std::string_view token, bool first, std::string& out) const;
  // After the last one.
  void Finish(std::string& out) const;

 private:
  struct ByteLevel {};
  struct ByteFallback {};
  struct Replace {
    std::string what;
    std::string by;
  };
  // In the first token the prefix that the pre-tokenizer added goes away.
  struct Metaspace {
    std::string space;
    bool drop_first;
  };
  // After Fuse: of the whole text. Before it: of every token.
  struct Strip {
    std::string character;
    uint64_t start;
    uint64_t stop;
  };
  using Step = std::variant<ByteLevel, ByteFallback, Replace, Metaspace, Strip>;
  struct Piecewise;

  static Result<Step> ParseStep(const Json& json, std::string_view type);

  std::vector<Step> steps_;  // of each token
  std::vector<Strip> ends_;  // of the whole
  bool spaces_between_ = false;
};

}  // namespace fathom
