#include "codec/json_leaves.h"

#include <algorithm>

#include "codec/byte_scan.h"

namespace fathom {

void JsonLeaves::Feed(std::string_view bytes) {
  const char* const end = bytes.data() + bytes.size();
  for (const char* at = bytes.data(); at != end;) {
    if (in_string_) {
      at = FeedString(at, end);
    } else {
      FeedByte(*at++);
    }
  }
}

// Up to the end of the string, or of the input.
const char* JsonLeaves::FeedString(const char* at, const char* end) {
  if (escaped_) {
    escaped_ = false;
    Keep({at, 1});
    return at + 1;
  }
  const char* const stop = FindStringByte(at, end);
  Keep({at, stop});
  if (stop == end) return end;
  Keep({stop, 1});
  if (*stop == '\\') escaped_ = true;
  if (*stop == '"') EndString();
  return stop + 1;
}

void JsonLeaves::FeedByte(char c) {
  switch (c) {
    case '"':
      text_ = '"';
      in_string_ = true;
      return;
    case '{':
    case '[':
      return Open(c == '{');
    case '}':
    case ']':
      EndWord();
      return Close();
    case ',':
      EndWord();
      if (Level* const here = level()) here->wants_key = here->object;
      return;
    case ':':
      if (Level* const here = level()) here->wants_key = false;
      return;
    case ' ':
    case '\t':
    case '\r':
    case '\n':
      return EndWord();
    default:
      if (!in_word_) text_.clear();
      in_word_ = true;
      Keep({&c, 1});
  }
}

void JsonLeaves::Open(bool object) {
  ++depth_;
  if (Level* const here = level()) *here = {.object = object, .wants_key = object, .key = {}};
}

void JsonLeaves::Close() { depth_ -= depth_ > 0 ? 1 : 0; }

void JsonLeaves::Keep(std::string_view text) {
  if (!shallow() || text_.size() >= kLongest) return;
  text_ += text.substr(0, kLongest - text_.size());
}

void JsonLeaves::EndString() {
  in_string_ = false;
  Level* const here = level();
  if (here == nullptr || !here->wants_key) return Leaf();
  // Of a key that is too long, the closing quote is missing too: it equals no name.
  here->key = text_.size() < kLongest ? text_.substr(1, text_.size() - 2) : text_;
}

void JsonLeaves::EndWord() {
  if (!in_word_) return;
  in_word_ = false;
  Leaf();
}

void JsonLeaves::Leaf() {
  if (level() != nullptr) OnLeaf(text_);
}

bool JsonLeaves::At(std::initializer_list<std::string_view> keys) const {
  const std::string_view* key = keys.begin();
  for (size_t i = 0; i < depth_; ++i) {
    if (!levels_[i].object) continue;
    if (key == keys.end() || *key != levels_[i].key) return false;
    ++key;
  }
  return key == keys.end();
}

}  // namespace fathom
