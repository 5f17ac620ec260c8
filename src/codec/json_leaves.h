// Which scalar values stand near the top of a JSON text that arrives in pieces, and where?
//
// The text is neither stored nor checked: of an invalid one some values are found, or none. Arrays
// have no part in a place: {"choices":[{"index":0}]} has 0 at choices, index.
//
// Memory  A key and a value, of at most kLongest bytes each, for each of kDepth levels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace fathom {

class JsonLeaves {
 public:
  static constexpr size_t kDepth = 4;     // levels of objects and arrays; what is deeper is skipped
  static constexpr size_t kLongest = 48;  // of a longer key or value only the beginning is seen

  virtual ~JsonLeaves() = default;

  void Feed(std::string_view bytes);

 protected:
  // `value` is its exact text: "\"stop\"", "null", "12".
  virtual void OnLeaf(std::string_view value) = 0;

  // In OnLeaf(): whether the value stands there.
  bool At(std::initializer_list<std::string_view> keys) const;

 private:
  struct Level {
    bool object = false;
    bool wants_key = false;
    std::string key;  // without its quotes, with its escapes
  };

  bool shallow() const { return depth_ <= kDepth; }
  Level* level() { return depth_ > 0 && shallow() ? &levels_[depth_ - 1] : nullptr; }
  const char* FeedString(const char* at, const char* end);
  void FeedByte(char c);
  void Open(bool object);
  void Close();
  void EndString();
  void EndWord();
  void Keep(std::string_view text);
  void Leaf();

  uint64_t depth_ = 0;
  std::array<Level, kDepth> levels_;
  std::string text_;  // of the key or value being read
  bool in_string_ = false;
  bool escaped_ = false;  // by the byte before
  bool in_word_ = false;  // a number, true, false or null
};

}  // namespace fathom
