#include "router/gateway/sse_event.h"

#include <algorithm>

#include "codec/byte_scan.h"

namespace fathom {

SseEvent::SseEvent(std::string_view in) : in_(in) {
  const char* const end = in.data() + in.size();
  for (bool blank = false; size_ < in.size() && !blank;) {
    const char* const begin = in.data() + size_;
    const char* const stop = FindLineEnd(begin, end);
    size_ = static_cast<size_t>(stop - in.data());
    if (stop != end) size_ += in.substr(size_).starts_with("\r\n") ? 2 : 1;
    blank = begin == stop;
    TakeLine({begin, stop});
  }
}

size_t SseEvent::PlaceOf(const char* byte) const {
  const auto offset = static_cast<size_t>(byte - data().data());
  const auto after = std::ranges::upper_bound(lines_, offset, {}, &Line::offset);
  const Line& line = *(after - 1);
  return static_cast<size_t>(line.text - in_.data()) + offset - line.offset;
}

void SseEvent::TakeLine(std::string_view line) {
  constexpr std::string_view kField = "data:";
  if (!line.starts_with(kField)) return;
  line.remove_prefix(kField.size());
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (lines_.empty()) {
    first_ = line;
    lines_.push_back({0, line.data()});
    return;
  }
  if (lines_.size() == 1) joined_ = first_;
  joined_ += '\n';
  lines_.push_back({joined_.size(), line.data()});
  joined_ += line;
}

}  // namespace fathom
