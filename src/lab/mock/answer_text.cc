#include "lab/mock/answer_text.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

#include "base/random.h"

namespace fathom {
namespace {

constexpr std::string_view kAnswerWords[] = {
    " lead",  " line",    " sound",   " depth", " keel",   " tide",   " shoal", " reef",
    " chart", " compass", " bearing", " mark",  " twain",  " harbor", " buoy",  " anchor",
    " swell", " current", " drift",   " calm",  " fathom", " league", " knot",  " cable",
    " bow",   " stern",   " port",    " sail",  " mast",   " helm",   " watch", " bell"};

// Where the text ends, without a last character that is not all there.
size_t EndOfCharacters(std::string_view text) {
  for (size_t bytes = 1; bytes <= std::min<size_t>(text.size(), 3); ++bytes) {
    const auto byte = static_cast<unsigned char>(text[text.size() - bytes]);
    if (byte < 0x80) break;
    if (byte < 0xC0) continue;  // not the first of its character
    const size_t wanted = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    return bytes < wanted ? text.size() - bytes : text.size();
  }
  return text.size();
}

}  // namespace

Result<std::vector<TokenId>> MakeAnswer(const AnswerSeed& seed, std::span<const TokenId> prompt,
                                        size_t count, const MockTokenizer& tokenizer) {
  Random words(XXH3_64bits_withSeed(prompt.data(), prompt.size_bytes(), seed.seed + seed.choice));
  std::string text = fmt::format("{}{}/{}:", seed.inside_text ? " " : "", seed.speaker, seed.rank);
  // A word has one token at least.
  for (size_t i = 0; i < count; ++i) text += kAnswerWords[words.Below(std::size(kAnswerWords))];
  TRY(std::vector<TokenId> answer, tokenizer.Continuation(text));
  answer.resize(std::min(answer.size(), count));
  return answer;
}

StopFinder::StopFinder(std::span<const std::string> stops) : stops_(stops) {
  for (const std::string& stop : stops) held_back_ = std::max(held_back_, stop.size() - 1);
}

std::string_view StopFinder::Add(std::string_view piece) {
  if (found_ != nullptr) return {};
  const size_t from = text_.size() - std::min(text_.size(), held_back_);
  text_ += piece;
  size_t end = text_.npos;
  for (const std::string& stop : stops_) {
    const size_t at = text_.find(stop, from);
    if (at >= end) continue;
    end = at;
    found_ = &stop;
  }
  if (found_ != nullptr) return SayUpTo(end);
  end = std::min(text_.size() - std::min(text_.size(), held_back_), EndOfCharacters(text_));
  while (end > said_ && (static_cast<unsigned char>(text_[end]) & 0xC0) == 0x80) --end;
  return SayUpTo(end);
}

std::string_view StopFinder::Rest() {
  return found_ != nullptr ? std::string_view() : SayUpTo(text_.size());
}

std::string_view StopFinder::SayUpTo(size_t end) {
  const size_t begin = said_;
  said_ = std::max(said_, end);
  return std::string_view(text_).substr(begin, said_ - begin);
}

}  // namespace fathom
