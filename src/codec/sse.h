// Server-sent events: where whole events end, and what they contain.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace fathom {

// Length of the longest prefix of `in` that ends with a blank line: the part that can be sent
// without splitting an event. Lines end with LF, CR LF or CR. `in` starts at an event boundary, and
// no event ends in its first `torn` bytes.
size_t WholeEvents(std::string_view in, size_t torn = 0);

// Yields the data of one event after the other, from bytes that arrive in any pieces.
//
// Memory  After Next() has returned nullopt, holds at most one incomplete event, and at most
//         kMaxEvent bytes of it: a longer event is skipped and counted.
class SseReader {
 public:
  static constexpr size_t kMaxEvent = 1 << 20;

  void Feed(std::string_view bytes);

  // The next event's data field (several data lines are joined by LF), or nullopt until more bytes
  // arrive. Comments and other fields are skipped; events without data are not returned. The view
  // is valid until the next call.
  std::optional<std::string_view> Next();

  size_t oversized() const { return oversized_; }

 private:
  std::optional<std::string_view> NextLine();
  void TakeLine(std::string_view line);
  bool EndEvent();  // true if it has data
  void DropIfTooLong();
  void Skip();

  std::string buffer_;
  size_t read_ = 0;        // processed bytes of buffer_
  size_t scanned_ = 0;     // buffer_ has no end of line between read_ and here
  bool after_cr_ = false;  // an LF that comes next belongs to the line before
  std::string data_;       // of the event being read, or of the one just returned
  bool has_data_ = false;
  bool handed_out_ = false;
  bool skipping_ = false;
  size_t oversized_ = 0;
};

}  // namespace fathom
