#include "codec/json_member.h"

#include <algorithm>

#include "base/text.h"
#include "codec/byte_scan.h"
#include "codec/json_scan.h"

namespace fathom {
namespace {

constexpr size_t kLongestEscape = 6;  // \u0061

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

std::optional<std::string_view> JsonMemberFinder::value() const {
  if (state_ != State::kEnd || !found_ || too_long_) return std::nullopt;
  return Trim(value_);
}

void JsonMemberFinder::Feed(std::string_view bytes) {
  const char* const end = bytes.data() + bytes.size();
  for (const char* at = bytes.data(); at != end && state_ != State::kEnd;) {
    if (in_string_) {
      at = FeedString(at, end);
    } else {
      FeedByte(*at++);
    }
  }
}

// Up to the end of the string, or of the input.
const char* JsonMemberFinder::FeedString(const char* at, const char* end) {
  if (escaped_) {
    escaped_ = false;
    Keep({at, 1});
    return at + 1;
  }
  const char* const found = FindStringByte(at, end);
  Keep({at, found});
  if (found == end) return end;
  escaped_ = *found == '\\';
  in_string_ = *found != '"';
  if (!in_string_ && state_ == State::kKey) {
    state_ = State::kColon;
  } else {
    Keep({found, 1});
  }
  return found + 1;
}

void JsonMemberFinder::FeedByte(char c) {
  switch (state_) {
    case State::kStart:
      if (c == '{') {
        state_ = State::kKey;
      } else if (!IsSpace(c)) {
        state_ = State::kEnd;
      }
      return;
    case State::kKey:
      return FeedKey(c);
    case State::kColon:
      return FeedColon(c);
    case State::kValue:
      return FeedValue(c);
    case State::kEnd:
      return;
  }
}

void JsonMemberFinder::FeedKey(char c) {
  if (c == '}') state_ = State::kEnd;
  if (c != '"') return;
  in_string_ = true;
  key_.clear();
}

void JsonMemberFinder::FeedColon(char c) {
  if (c != ':') return;
  state_ = State::kValue;
  wanted_ = JsonKeyIs(key_, name_);
  if (!wanted_) return;
  found_ = true;
  too_long_ = false;
  value_.clear();
}

void JsonMemberFinder::FeedValue(char c) {
  if (depth_ == 0 && (c == ',' || c == '}')) {
    state_ = c == ',' ? State::kKey : State::kEnd;
    return;
  }
  if (c == '"') in_string_ = true;
  if (c == '{' || c == '[') ++depth_;
  if ((c == '}' || c == ']') && depth_ > 0) --depth_;
  Keep({&c, 1});
}

void JsonMemberFinder::Keep(std::string_view text) {
  if (state_ == State::kKey) {
    // One byte more than the longest spelling shows that it is another key.
    const size_t most = name_.size() * kLongestEscape + 1;
    key_ += text.substr(0, most - std::min(most, key_.size()));
  } else if (wanted_) {
    too_long_ = too_long_ || value_.size() + text.size() > kMaxValue;
    if (!too_long_) value_ += text;
  }
}

}  // namespace fathom
