#include "text/tokenizer/added_token_matcher.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "text/unicode/code_point_class.h"
#include "text/unicode/utf8.h"

namespace fathom {
namespace {

CodePointClass ClassAtStart(std::string_view text) {
  return text.empty() ? 0 : CodePointClasses::Table()[FirstCodePoint(text).value];
}

// Where the last character of `text` begins.
size_t LastCharacter(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && text.size() - at < 4 && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80) --at;
  return at + FirstCodePoint(text.substr(at)).length == text.size() ? at : text.size() - 1;
}

CodePointClass ClassAtEnd(std::string_view text) {
  return text.empty() ? 0 : ClassAtStart(text.substr(LastCharacter(text)));
}

size_t SpaceBefore(std::string_view text, size_t at, size_t not_before) {
  while (at > not_before && (ClassAtEnd(text.substr(not_before, at - not_before)) & kSpace) != 0) {
    at = not_before + LastCharacter(text.substr(not_before, at - not_before));
  }
  return at;
}

size_t SpaceBehind(std::string_view text, size_t at) {
  while ((ClassAtStart(text.substr(at)) & kSpace) != 0) {
    at += FirstCodePoint(text.substr(at)).length;
  }
  return at;
}

bool StandsAlone(std::string_view text, size_t begin, size_t end) {
  return (ClassAtEnd(text.substr(0, begin)) & kWordPart) == 0 &&
         (ClassAtStart(text.substr(end)) & kWordPart) == 0;
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens,
                                     std::vector<std::string> contents) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (contents[i].empty()) continue;
    // "\n" and a letter could stand inside, or the line's end be taken along.
    if (tokens[i].lstrip || contents[i].find('\n') != std::string::npos) keeps_lines_apart_ = false;
    entries_.push_back({std::move(contents[i]), i, std::move(tokens[i])});
  }
  std::ranges::sort(entries_, [](const Entry& a, const Entry& b) {
    return std::tie(a.content, a.place) < std::tie(b.content, b.place);
  });
  const auto doubles = std::ranges::unique(entries_, {}, &Entry::content);
  entries_.erase(doubles.begin(), doubles.end());
  for (uint32_t i = 0; i < entries_.size(); ++i) {
    Range& range = starting_[static_cast<uint8_t>(entries_[i].content[0])];
    if (range.end == 0) range.begin = i;
    range.end = i + 1;
  }
  if (!entries_.empty() && entries_.front().content[0] == entries_.back().content[0]) {
    only_start_ = entries_.front().content[0];
  }
}

size_t AddedTokenMatcher::NextStart(std::string_view text, size_t at) const {
  if (only_start_) return std::min(text.find(*only_start_, at), text.size());
  while (at < text.size() && starting_[static_cast<uint8_t>(text[at])].end == 0) ++at;
  return at;
}

const AddedTokenMatcher::Entry* AddedTokenMatcher::Longest(std::string_view text) const {
  Range range = starting_[static_cast<uint8_t>(text[0])];
  const Entry* longest = nullptr;
  // All in the range share the first `length` bytes with the text, and the shortest comes first.
  for (size_t length = 1; range.begin < range.end; ++length) {
    if (entries_[range.begin].content.size() == length) longest = &entries_[range.begin++];
    if (length == text.size()) break;
    const auto byte_of = [&](const Entry& entry) {
      return static_cast<uint8_t>(entry.content[length]);
    };
    const auto same =
        std::ranges::equal_range(entries_.begin() + range.begin, entries_.begin() + range.end,
                                 static_cast<uint8_t>(text[length]), {}, byte_of);
    range = {static_cast<uint32_t>(same.begin() - entries_.begin()),
             static_cast<uint32_t>(same.end() - entries_.begin())};
  }
  return longest;
}

void AddedTokenMatcher::Split(std::string_view text, std::vector<TextPiece>& out) const {
  const size_t already = out.size();
  size_t done = 0;
  for (size_t at = NextStart(text, 0); at < text.size(); at = NextStart(text, at)) {
    const Entry* found = Longest(text.substr(at));
    if (found == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at;
    size_t end = at + found->content.size();
    at = end;
    if (found->token.single_word && !StandsAlone(text, begin, end)) continue;
    if (found->token.lstrip) begin = SpaceBefore(text, begin, std::min(begin, done));
    if (found->token.rstrip) end = SpaceBehind(text, end);
    if (done < begin) {
      out.push_back({text.substr(done, begin - done)});
    } else if (done > begin && out.size() > already) {
      // It begins in the space that the one before has taken along, and has the better claim.
      std::string_view& last = out.back().text;
      last = last.substr(0, last.size() - std::min(last.size(), done - begin));
    }
    out.push_back({text.substr(begin, end - begin), found->token.id});
    done = end;
  }
  if (done < text.size()) out.push_back({text.substr(done)});
}

}  // namespace fathom
