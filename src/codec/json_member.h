// What is the value of one member of a JSON object that passes by in pieces?
//
// The object is neither kept nor checked. If it is valid, the answer is what JsonScanner would find
// in it (where the member is repeated, the last one); if it is not, nothing or some text that
// stands in it.
//
// Memory  At most kMaxValue bytes of the value; one that is longer counts as none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fathom {

class JsonMemberFinder {
 public:
  static constexpr size_t kMaxValue = 4096;

  // The name outlives the finder.
  explicit JsonMemberFinder(std::string_view name) : name_(name) {}

  void Feed(std::string_view bytes);

  // Once the object is complete, and if it has the member. Good until the next Feed().
  std::optional<std::string_view> value() const;

 private:
  enum class State : uint8_t { kStart, kKey, kColon, kValue, kEnd };

  const char* FeedString(const char* at, const char* end);
  void FeedByte(char c);
  void FeedKey(char c);
  void FeedColon(char c);
  void FeedValue(char c);
  void Keep(std::string_view text);

  const std::string_view name_;
  State state_ = State::kStart;
  bool in_string_ = false;
  bool escaped_ = false;  // by the byte before
  uint64_t depth_ = 0;    // of brackets inside the value
  std::string key_;       // as it stands, cut off where it is longer than the name can be
  bool wanted_ = false;   // the value is the one
  bool too_long_ = false;
  bool found_ = false;
  std::string value_;
};

}  // namespace fathom
