#include "codec/sse.h"

#include <algorithm>

#include "codec/byte_scan.h"

namespace fathom {
namespace {

bool IsLineEnd(char c) { return c == '\n' || c == '\r'; }

}  // namespace

size_t WholeEvents(std::string_view in, size_t torn) {
  // From the back: the data of one read usually ends at an event boundary.
  for (size_t end = in.size(); end > torn; --end) {
    const char last = in[end - 1];
    if (!IsLineEnd(last)) continue;
    // The CR of a CR LF is not a separate line end; the LF was checked before.
    if (last == '\r' && end < in.size() && in[end] == '\n') continue;
    const bool pair = last == '\n' && end >= 2 && in[end - 2] == '\r';
    const size_t begin = end - (pair ? 2 : 1);
    if (begin == 0 || IsLineEnd(in[begin - 1])) return end;
  }
  return 0;
}

void SseReader::Feed(std::string_view bytes) {
  if (read_ > 0) {
    buffer_.erase(0, read_);
    scanned_ -= read_;
    read_ = 0;
  }
  buffer_ += bytes;
}

std::optional<std::string_view> SseReader::Next() {
  if (handed_out_) {
    data_.clear();
    has_data_ = handed_out_ = false;
  }
  while (const std::optional<std::string_view> line = NextLine()) {
    if (!line->empty()) {
      TakeLine(*line);
    } else if (EndEvent()) {
      handed_out_ = true;
      return data_;
    }
  }
  DropIfTooLong();
  return std::nullopt;
}

std::optional<std::string_view> SseReader::NextLine() {
  if (after_cr_ && read_ < buffer_.size()) {
    after_cr_ = false;
    if (buffer_[read_] == '\n') scanned_ = ++read_;
  }
  const char* const end = buffer_.data() + buffer_.size();
  const char* const found = FindLineEnd(buffer_.data() + scanned_, end);
  scanned_ = static_cast<size_t>(found - buffer_.data());
  if (found == end) return std::nullopt;
  after_cr_ = *found == '\r';
  const std::string_view line(buffer_.data() + read_, found);
  read_ = ++scanned_;
  return line;
}

void SseReader::TakeLine(std::string_view line) {
  if (skipping_) return;
  if (data_.size() + line.size() > kMaxEvent) return Skip();
  const size_t colon = std::min(line.find(':'), line.size());
  if (line.substr(0, colon) != "data") return;
  line.remove_prefix(std::min(colon + 1, line.size()));
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (has_data_) data_ += '\n';
  data_ += line;
  has_data_ = true;
}

bool SseReader::EndEvent() {
  const bool event = has_data_ && !skipping_;
  skipping_ = false;
  if (!event) {
    data_.clear();
    has_data_ = false;
  }
  return event;
}

// Checks the incomplete line that is left in the buffer.
void SseReader::DropIfTooLong() {
  const size_t unfinished = buffer_.size() - read_;
  if (!skipping_ && data_.size() + unfinished > kMaxEvent) Skip();
  if (!skipping_ || unfinished <= 1) return;
  // Keep one byte, so that the line is known not to be blank.
  read_ = buffer_.size() - 1;
}

void SseReader::Skip() {
  skipping_ = true;
  ++oversized_;
  data_ = std::string();
  has_data_ = false;
}

}  // namespace fathom
