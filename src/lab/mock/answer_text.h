// What does a simulated engine say, and where does it stop?
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lab/mock/kv_event.h"
#include "lab/mock/mock_tokenizer.h"

namespace fathom {

// Who answers what. The same again gives the same words again, as an engine at temperature 0 does.
struct AnswerSeed {
  std::string_view speaker;
  uint64_t rank = 0;
  uint64_t seed = 0;
  uint64_t choice = 0;
  bool inside_text = false;  // begins with a space, so that it can be appended to its prompt
};

// "<speaker>/<rank>:" and then words, `count` tokens in all.
Result<std::vector<TokenId>> MakeAnswer(const AnswerSeed& seed, std::span<const TokenId> prompt,
                                        size_t count, const MockTokenizer& tokenizer);

// Cuts a text that comes in pieces where the first of the stop strings begins. What might be the
// beginning of one is held back until it is known, and so is the beginning of a character.
class StopFinder {
 public:
  explicit StopFinder(std::span<const std::string> stops);

  // The text that can be said now. Nothing more comes after a stop was found.
  std::string_view Add(std::string_view piece);
  // What was held back, if the text ends here.
  std::string_view Rest();

  const std::string* found() const { return found_; }  // the stop string
  std::string_view said() const { return std::string_view(text_).substr(0, said_); }

 private:
  std::string_view SayUpTo(size_t end);

  const std::span<const std::string> stops_;
  size_t held_back_ = 0;  // bytes
  std::string text_;
  size_t said_ = 0;
  const std::string* found_ = nullptr;
};

}  // namespace fathom
