// Server-sent events: where whole events end, and what they say.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace fathom {

// Length of the longest prefix of `in` that ends with a blank line: the part that can be shown to a
// reader without tearing an event. Lines end with LF, CR LF or CR. `in` starts at an event
// boundary, and its first `torn` bytes are known to have no end of an event.
size_t WholeEvents(std::string_view in, size_t torn = 0);

// Yields the data of one event after the other, from bytes that arrive in any pieces.
//
// Memory  Once Next() has nothing more to say, holds at most one unfinished event, and no more than
//         kMaxEvent bytes of it: an event that is longer is skipped and counted.
class SseReader {
 public:
  static constexpr size_t kMaxEvent = 1 << 20;

  void Feed(std::string_view bytes);

  // The next event's data field (several data lines are joined by LF), or nothing until more bytes
  // come. Comments and other fields are passed over; an event without data is no event. The view is
  // good until the next call.
  std::optional<std::string_view> Next();

  size_t oversized() const { return oversized_; }

 private:
  std::optional<std::string_view> NextLine();
  void TakeLine(std::string_view line);
  bool EndEvent();  // true if it has data
  void DropIfTooLong();
  void Skip();

  std::string buffer_;
  size_t read_ = 0;        // what of buffer_ has been dealt with
  size_t scanned_ = 0;     // up to here buffer_ has no end of line after read_
  bool after_cr_ = false;  // an LF that comes now belongs to the line before
  std::string data_;       // of the event being read, or of the one just handed out
  bool has_data_ = false;
  bool handed_out_ = false;
  bool skipping_ = false;
  size_t oversized_ = 0;
};

}  // namespace fathom
