// Where does the first event of this text end, and what is its data?
//
// Memory  Refers to the text; the data is copied only if it has several lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fathom {

// Up to the blank line that ends the event, or all of the text.
class SseEvent {
 public:
  explicit SseEvent(std::string_view in);

  std::string_view text() const { return in_.substr(0, size_); }
  std::string_view data() const { return lines_.size() > 1 ? joined_ : first_; }

  // The position in the event of a byte of its data.
  size_t PlaceOf(const char* byte) const;

 private:
  struct Line {
    size_t offset;  // in the data
    const char* text;
  };

  void TakeLine(std::string_view line);

  const std::string_view in_;
  size_t size_ = 0;
  std::vector<Line> lines_;  // of the data; nearly always one
  std::string_view first_;
  std::string joined_;  // if there are several lines
};

}  // namespace fathom
