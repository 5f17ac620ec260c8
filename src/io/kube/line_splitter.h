// Where does a line of a stream end that comes in pieces?
//
//   splitter.Feed(piece);
//   while (auto line = splitter.Next()) ...      // without its end; valid until the next Feed()
//   if (splitter.open() > kMaxLine) ...          // what there is of the next line
//
// Memory  One piece, and what is open; the caller bounds that.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace fathom {

class LineSplitter {
 public:
  void Feed(std::string_view piece) {
    text_.erase(0, begin_);
    scanned_ -= begin_;
    begin_ = 0;
    text_ += piece;
  }

  std::optional<std::string_view> Next() {
    const size_t end = text_.find('\n', scanned_);
    if (end == std::string::npos) {
      scanned_ = text_.size();
      return std::nullopt;
    }
    const std::string_view line = std::string_view(text_).substr(begin_, end - begin_);
    begin_ = scanned_ = end + 1;
    return line;
  }

  // Bytes of a line whose end has not come.
  size_t open() const { return text_.size() - begin_; }

 private:
  std::string text_;
  size_t begin_ = 0;    // of what Next() has not returned
  size_t scanned_ = 0;  // there is no line's end between begin_ and this
};

}  // namespace fathom
