// What does the model's normalizer make of a text?
//
// Errors   Parse(): kCaller. Apply(): kCaller, when an expression gives up or the text grows beyond
//          kMaxGrowth times its size.
// Threads  Immutable.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "codec/json.h"
#include "text/tokenizer/text_pattern.h"
#include "text/unicode/normal_form.h"

namespace fathom {

class Normalizer {
 public:
  static constexpr size_t kMaxGrowth = 64;

  static Result<Normalizer> Parse(const Json& json);

  // It changes no text at all.
  bool is_identity() const { return steps_.empty(); }
  // What it makes of two texts is what it makes of both together, if the first ends with a line and
  // the second begins with an ASCII letter or digit.
  bool keeps_lines_apart() const;

  // Whether it is seen at a glance that `text` stays as it is.
  bool Keeps(std::string_view text) const;
  Result<std::string> Apply(std::string_view text) const;

 private:
  struct Replace {
    TextPattern pattern;
    std::string by;
  };
  struct Prepend {
    std::string text;
  };
  struct Lowercase {};
  struct Strip {
    bool left;
    bool right;
  };
  using Step = std::variant<NormalForm, Replace, Prepend, Lowercase, Strip>;
  struct Applied;

  static Result<Step> ParseStep(const Json& json);

  std::vector<Step> steps_;
};

}  // namespace fathom
