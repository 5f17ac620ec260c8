#include "mock/answer_text.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

#include "base/random.h"
#include "mock/toy_tokenizer.h"

namespace fathom {
namespace {

constexpr std::string_view kWords[] = {
    " lead",  " line",    " sound",   " depth", " keel",   " tide",   " shoal", " reef",
    " chart", " compass", " bearing", " mark",  " twain",  " harbor", " buoy",  " anchor",
    " swell", " current", " drift",   " calm",  " fathom", " league", " knot",  " cable",
    " bow",   " stern",   " port",    " sail",  " mast",   " helm",   " watch", " bell"};

}  // namespace

std::vector<TokenId> MakeAnswer(const AnswerSeed& seed, std::span<const TokenId> prompt,
                                size_t count) {
  Random words(XXH3_64bits_withSeed(prompt.data(), prompt.size_bytes(), seed.seed + seed.choice));
  std::vector<TokenId> answer =
      Tokenize(fmt::format("{}{}/{}:", seed.inside_text ? " " : "", seed.speaker, seed.rank));
  // Every word begins with a space, so the pieces can be tokenized one by one.
  while (answer.size() < count) AppendTokens(answer, kWords[words.Below(std::size(kWords))]);
  answer.resize(count);
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
  end = text_.size() - std::min(text_.size(), held_back_);
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
