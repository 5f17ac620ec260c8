// Builds a text from pieces that is then used as a whole: one capacity check per Add(), however
// many pieces it has.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

namespace fathom {

// A number as text: Decimal(42).text() is "42".
class Decimal {
 public:
  explicit Decimal(uint64_t value) : end_(std::to_chars(text_, text_ + sizeof(text_), value).ptr) {}
  std::string_view text() const { return {text_, end_}; }

 private:
  char text_[20];
  const char* end_;
};

class TextBuilder {
 public:
  void Clear() { size_ = 0; }

  template <class... Pieces>
  void Add(const Pieces&... pieces) {
    AddAll({View(pieces)...});
  }

  std::string_view text() const { return {data_.get(), size_}; }
  char* data() { return data_.get(); }
  size_t size() const { return size_; }

 private:
  static std::string_view View(std::string_view piece) { return piece; }
  template <size_t N>
  static std::string_view View(const char (&literal)[N]) {
    return {literal, N - 1};  // known at compile time
  }

  void AddAll(std::initializer_list<std::string_view> pieces) {
    size_t wanted = size_;
    for (const std::string_view piece : pieces) wanted += piece.size();
    if (wanted > capacity_) Grow(wanted);
    char* at = data_.get() + size_;
    for (const std::string_view piece : pieces) {
      std::memcpy(at, piece.data(), piece.size());
      at += piece.size();
    }
    size_ = wanted;
  }

  void Grow(size_t wanted) {
    const size_t capacity = std::max({wanted, capacity_ * 2, size_t{1024}});
    std::unique_ptr<char[]> larger(new char[capacity]);
    if (size_ > 0) std::memcpy(larger.get(), data_.get(), size_);
    data_ = std::move(larger);
    capacity_ = capacity;
  }

  std::unique_ptr<char[]> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace fathom
