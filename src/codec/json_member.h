// What is the value of one member of a JSON object that arrives in pieces?
//
// The object is neither stored nor checked. If it is valid, the result is the one that JsonScanner
// would find (if the member is repeated, the last one); if it is invalid, the result is nothing or
// some text from the object.
//
// Memory  At most kMaxValue bytes of the value; a longer value is treated as missing.
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

  // `name` must outlive the finder.
  explicit JsonMemberFinder(std::string_view name) : name_(name) {}

  void Feed(std::string_view bytes);

  // Once the object is complete, and if it has the member. Valid until the next Feed().
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
  std::string key_;       // with its escapes, cut to the longest spelling of the name plus one byte
  bool wanted_ = false;   // the current value is the wanted one
  bool too_long_ = false;
  bool found_ = false;
  std::string value_;
};

}  // namespace fathom
