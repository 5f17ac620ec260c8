// The client's view of a stream that arrives in pieces, for tests and fuzz programs: the filter,
// fed in the same way as by the relay.
#pragma once

#include <string>
#include <string_view>

#include "codec/sse.h"
#include "router/gateway/usage_filter.h"

namespace fathom {

class UsageStream {
 public:
  explicit UsageStream(const UsageWish& wish) : filter_(wish) {}

  void Feed(std::string_view piece) {
    const bool whole = piece.ends_with("\n\n") || piece.ends_with("\r\n\r\n");
    if (held_.empty() && whole && filter_.Passes(piece)) {
      shown_ += piece;
      return;
    }
    held_ += piece;
    Show(WholeEvents(held_, torn_));
    torn_ = held_.size();
  }
  void End() { Show(held_.size()); }

  const std::string& shown() const { return shown_; }
  const UsageFilter& filter() const { return filter_; }

 private:
  void Show(size_t size) {
    size = filter_.Filter(held_, size);
    shown_.append(held_, 0, size);
    held_.erase(0, size);
  }

  UsageFilter filter_;
  std::string held_;
  size_t torn_ = 0;  // leading bytes of held_ in which no event ends
  std::string shown_;
};

}  // namespace fathom
