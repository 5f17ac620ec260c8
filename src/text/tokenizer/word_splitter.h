// Where does the next word of a text end? By hand for the expressions that most models use: what
// the expression engine does in several passes and with backtracking is one pass here.
//
// Each pattern covers its text: words follow one another without gaps.
//
// Errors   None. A byte that is not UTF-8 is a character that is neither letter, number nor space.
// Threads  One thread's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "text/unicode/code_point_class.h"

namespace fathom {

enum class WordPattern : uint8_t {
  kGpt2,          // also what ByteLevel does by itself
  kOneDigit,      // Qwen 2 and 3: digits stand alone
  kThreeDigits,   // cl100k, Llama 3: up to three digits
  kCased,         // Tekken: camelCase is two words, digits stand alone
  kCasedEndings,  // o200k: the same with 's and 'll as part of the word, up to three digits
  kDeepSeek,      // three expressions, one after the other
};

// The pattern that Split steps with these expressions amount to, all of them "Isolated".
std::optional<WordPattern> WordPatternOf(std::span<const std::string_view> expressions);
// The expressions, for comparison.
std::span<const std::string_view> ExpressionsOf(WordPattern pattern);

class WordSplitter {
 public:
  WordSplitter(WordPattern pattern, std::string_view text)
      : pattern_(pattern), text_(text), end_(text.size()) {}

  // Where the word that begins at `at` ends. `at` is 0, or what was returned last; less than the
  // size of the text.
  size_t EndOfWord(size_t at);

 private:
  struct Character {
    CodePointClass bits;
    uint32_t length;  // 0: the text ends
  };

  Character Look(size_t at) const;
  bool IsNewline(size_t at) const { return text_[at] == '\n' || text_[at] == '\r'; }
  size_t Skip(size_t at, CodePointClass any) const;
  size_t SkipOthers(size_t at, CodePointClass none) const;
  size_t SkipNewlines(size_t at, bool slashes) const;
  size_t EndOfDigits(size_t at, int most) const;
  size_t EndOfEnding(size_t at, bool any_case) const;
  size_t EndOfBlanks(size_t at, bool lines) const;
  size_t EndOfCased(size_t at, Character first) const;
  size_t EndOfMixedCase(size_t at) const;

  size_t Gpt2(size_t at) const;
  size_t Uncased(size_t at, int digits) const;
  size_t Cased(size_t at, bool endings, int digits) const;
  size_t DeepSeek(size_t at);
  size_t DeepSeekWord(size_t at) const;
  bool IsDeepSeekIdeograph(size_t at) const;

  const CodePointClasses& classes_ = CodePointClasses::Table();
  WordPattern pattern_;
  std::string_view text_;
  size_t end_;          // of what is looked at: the text, or DeepSeek's stretch of it
  size_t stretch_ = 0;  // DeepSeek: where the stretch ends that words were last found in
};

}  // namespace fathom
