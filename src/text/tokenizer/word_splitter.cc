#include "text/tokenizer/word_splitter.h"

#include <algorithm>
#include <array>

namespace fathom {
namespace {

using Expressions = std::span<const std::string_view>;

constexpr std::array<std::string_view, 1> kGpt2Expressions = {
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"};
constexpr std::array<std::string_view, 1> kOneDigitExpressions = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::array<std::string_view, 1> kThreeDigitsExpressions = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::array<std::string_view, 1> kCasedExpressions = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::array<std::string_view, 1> kCasedEndingsExpressions = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::array<std::string_view, 3> kDeepSeekExpressions = {
    R"(\p{N}{1,3})", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
    "|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)"
    "|\\s+"};

constexpr std::array kPatterns = {WordPattern::kGpt2,         WordPattern::kOneDigit,
                                  WordPattern::kThreeDigits,  WordPattern::kCased,
                                  WordPattern::kCasedEndings, WordPattern::kDeepSeek};

constexpr CodePointClass kNotOther = kLetter | kNumber | kSpace;
constexpr CodePointClass kCapitalPart = kUpperLetter | kOtherLetter | kMark;
constexpr CodePointClass kSmallPart = kLowerLetter | kOtherLetter | kMark;

bool IsAsciiLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

Expressions ExpressionsOf(WordPattern pattern) {
  switch (pattern) {
    case WordPattern::kGpt2:
      return kGpt2Expressions;
    case WordPattern::kOneDigit:
      return kOneDigitExpressions;
    case WordPattern::kThreeDigits:
      return kThreeDigitsExpressions;
    case WordPattern::kCased:
      return kCasedExpressions;
    case WordPattern::kCasedEndings:
      return kCasedEndingsExpressions;
    case WordPattern::kDeepSeek:
      break;
  }
  return kDeepSeekExpressions;
}

std::optional<WordPattern> WordPatternOf(Expressions expressions) {
  const auto found = std::ranges::find_if(kPatterns, [&](WordPattern pattern) {
    return std::ranges::equal(ExpressionsOf(pattern), expressions);
  });
  return found == kPatterns.end() ? std::nullopt : std::optional(*found);
}

WordSplitter::Character WordSplitter::Look(size_t at) const {
  if (at >= end_) return {0, 0};
  const auto first = static_cast<uint8_t>(text_[at]);
  if (first < 0x80) return {classes_[first], 1};
  const CodePoint next = FirstCodePoint(text_.substr(at, 4));
  return {classes_[next.value], next.length};
}

// Past the characters that have any of these properties.
size_t WordSplitter::Skip(size_t at, CodePointClass any) const {
  for (;;) {
    const Character next = Look(at);
    if ((next.bits & any) == 0) return at;
    at += next.length;
  }
}

// Past the characters that have none of these properties.
size_t WordSplitter::SkipOthers(size_t at, CodePointClass none) const {
  for (;;) {
    const Character next = Look(at);
    if (next.length == 0 || (next.bits & none) != 0) return at;
    at += next.length;
  }
}

size_t WordSplitter::SkipNewlines(size_t at, bool slashes) const {
  while (at < end_ && (IsNewline(at) || (slashes && text_[at] == '/'))) ++at;
  return at;
}

size_t WordSplitter::EndOfDigits(size_t at, int most) const {
  for (int i = 0; i < most; ++i) {
    const Character next = Look(at);
    if ((next.bits & kNumber) == 0) break;
    at += next.length;
  }
  return at;
}

// Of 's, 't, 're, 've, 'm, 'll and 'd, or `at` if there is none of them.
size_t WordSplitter::EndOfEnding(size_t at, bool any_case) const {
  const std::string_view rest = text_.substr(at, std::min<size_t>(end_ - at, 3));
  if (rest.size() < 2 || rest[0] != '\'') return at;
  const auto letter = [&](size_t i) {
    return static_cast<char>(any_case && IsAsciiLetter(rest[i]) ? rest[i] | 0x20 : rest[i]);
  };
  const char first = letter(1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  if (rest.size() < 3) return at;
  const char second = letter(2);
  if ((first == 'r' || first == 'v') && second == 'e') return at + 3;
  if (first == 'l' && second == 'l') return at + 3;
  // The long s is an s to whoever does not look at case.
  return any_case && rest.substr(1) == "\u017f" ? at + 3 : at;
}

// \s*[\r\n]+|\s+(?!\S)|\s+, the first of them only with `lines`.
size_t WordSplitter::EndOfBlanks(size_t at, bool lines) const {
  size_t end = at;
  size_t last = at;
  size_t end_of_lines = at;
  for (Character next = Look(end); (next.bits & kSpace) != 0; next = Look(end)) {
    last = end;
    end += next.length;
    if (IsNewline(last)) end_of_lines = end;
  }
  if (lines && end_of_lines != at) return end_of_lines;
  return end == end_ || last == at ? end : last;
}

size_t WordSplitter::Gpt2(size_t at) const {
  if (const size_t end = EndOfEnding(at, false); end != at) return end;
  const size_t word = text_[at] == ' ' ? at + 1 : at;
  const Character first = Look(word);
  if ((first.bits & kLetter) != 0) return Skip(word, kLetter);
  if ((first.bits & kNumber) != 0) return Skip(word, kNumber);
  if (first.length != 0 && (first.bits & kSpace) == 0) return SkipOthers(word, kNotOther);
  return EndOfBlanks(at, false);
}

size_t WordSplitter::Uncased(size_t at, int digits) const {
  const Character first = Look(at);
  if ((first.bits & kLetter) != 0) return Skip(at + first.length, kLetter);
  if ((first.bits & kNumber) != 0) return EndOfDigits(at, digits);
  if (const size_t end = EndOfEnding(at, true); end != at) return end;
  const size_t word = at + first.length;
  const Character second = Look(word);
  if ((second.bits & kLetter) != 0 && !IsNewline(at)) return Skip(word + second.length, kLetter);
  if ((first.bits & kSpace) == 0) return SkipNewlines(SkipOthers(word, kNotOther), false);
  if (text_[at] == ' ' && second.length != 0 && (second.bits & kNotOther) == 0) {
    return SkipNewlines(SkipOthers(word, kNotOther), false);
  }
  return EndOfBlanks(at, true);
}

// Capitals and then small letters, [capital]*[small]+, where uncased letters and marks are both.
// When the capitals are followed by no small letter, the last one that is also small has to be it.
// `at` if there is none.
size_t WordSplitter::EndOfMixedCase(size_t at) const {
  size_t end = at;
  size_t after_last_small = at;
  for (Character next = Look(end); (next.bits & kCapitalPart) != 0; next = Look(end)) {
    end += next.length;
    if ((next.bits & kSmallPart) != 0) after_last_small = end;
  }
  const size_t small = Skip(end, kSmallPart);
  return small != end ? small : after_last_small;
}

// The first two alternatives of the cased patterns, `at` if neither matches: each is tried with a
// character before the letters, and then without. A mark may be that character, or be a letter.
size_t WordSplitter::EndOfCased(size_t at, Character first) const {
  const bool before = (first.bits & (kLetter | kNumber)) == 0 && !IsNewline(at);
  const size_t word = before ? at + first.length : at;
  if (const size_t end = EndOfMixedCase(word); end != word) return end;
  if (before && (first.bits & kMark) != 0) return EndOfMixedCase(at);
  const size_t capitals = Skip(word, kCapitalPart);
  return capitals == word ? at : capitals;
}

size_t WordSplitter::Cased(size_t at, bool endings, int digits) const {
  const Character first = Look(at);
  if ((first.bits & kNumber) != 0) return EndOfDigits(at, digits);
  if (const size_t end = EndOfCased(at, first); end != at) {
    return endings ? EndOfEnding(end, true) : end;
  }
  if ((first.bits & kSpace) == 0) return SkipNewlines(SkipOthers(at, kNotOther), true);
  const size_t word = at + first.length;
  const Character second = Look(word);
  if (text_[at] == ' ' && second.length != 0 && (second.bits & kNotOther) == 0) {
    return SkipNewlines(SkipOthers(word, kNotOther), true);
  }
  return EndOfBlanks(at, true);
}

// The ranges of the second expression.
bool WordSplitter::IsDeepSeekIdeograph(size_t at) const {
  const uint32_t value = FirstCodePoint(text_.substr(at, 4)).value;
  return (value >= 0x4e00 && value <= 0x9fa5) || (value >= 0x3040 && value <= 0x30ff);
}

// The first two expressions cut the text into stretches: up to three digits, ideographs and kana,
// and what lies between. The third sees each stretch as a text of its own.
size_t WordSplitter::DeepSeek(size_t at) {
  if (at >= stretch_) {
    end_ = text_.size();
    stretch_ = EndOfDigits(at, 3);
    if (stretch_ != at) return stretch_;  // the third finds nothing in them
    const bool ideographs = IsDeepSeekIdeograph(at);
    for (Character next = Look(at); next.length != 0; next = Look(stretch_)) {
      if ((next.bits & kNumber) != 0 || IsDeepSeekIdeograph(stretch_) != ideographs) break;
      stretch_ += next.length;
    }
  }
  end_ = stretch_;
  return DeepSeekWord(at);
}

size_t WordSplitter::DeepSeekWord(size_t at) const {
  constexpr CodePointClass kPart = kLetter | kMark;
  constexpr CodePointClass kSign = kPunctuation | kSymbol;
  const Character first = Look(at);
  if ((first.bits & kPart) != 0) return Skip(at, kPart);
  const size_t word = at + first.length;
  const Character second = Look(word);
  if ((first.bits & kSign) != 0) {
    const bool ascii = static_cast<uint8_t>(text_[at]) < 0x80;
    if (ascii && word < end_ && IsAsciiLetter(text_[word])) {
      const std::string_view rest = text_.substr(word, end_ - word);
      return word +
             static_cast<size_t>(std::ranges::find_if_not(rest, IsAsciiLetter) - rest.begin());
    }
    return SkipNewlines(Skip(at, kSign), false);
  }
  if ((second.bits & kPart) != 0 && !IsNewline(at)) return Skip(word, kPart);
  if ((first.bits & kSpace) == 0) {
    // Nothing matches here: up to where something does, it is a word that the matches leave over.
    size_t end = word;
    for (;;) {
      const Character next = Look(end);
      if (next.length == 0 || (next.bits & (kPart | kSign | kSpace)) != 0) return end;
      if ((Look(end + next.length).bits & kPart) != 0) return end;
      end += next.length;
    }
  }
  if (text_[at] == ' ' && (second.bits & kSign) != 0) return SkipNewlines(Skip(word, kSign), false);
  return EndOfBlanks(at, true);
}

size_t WordSplitter::EndOfWord(size_t at) {
  switch (pattern_) {
    case WordPattern::kGpt2:
      return Gpt2(at);
    case WordPattern::kOneDigit:
      return Uncased(at, 1);
    case WordPattern::kThreeDigits:
      return Uncased(at, 3);
    case WordPattern::kCased:
      return Cased(at, false, 1);
    case WordPattern::kCasedEndings:
      return Cased(at, true, 3);
    case WordPattern::kDeepSeek:
      break;
  }
  return DeepSeek(at);
}

}  // namespace fathom
