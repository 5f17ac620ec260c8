// How many tokens of its prompt did an engine find cached, and what of its stream may be shown?
//
// Engines tell at the end of a stream, if they are asked to. Where the router has asked and the
// client has not, the client gets the stream that it would have got without the question:
//
//   an event that tells usage and has no choices   is dropped
//   "usage" beside choices                         becomes null, or goes, as without the question
//   "usage":null                                   goes, if the engine writes it only when asked
//
// Every other byte passes as it is. What passes is whole events, which may be cut in any way.
//
// Memory  Nothing is kept of an event.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/usage_report.h"

namespace fathom {

struct UsageWish {
  enum class Action : uint8_t { kIgnore, kRead, kTakeOut };
  Action action = Action::kIgnore;
  bool null_unasked = false;  // the engine says "usage":null where it is not asked
};

class UsageFilter {
 public:
  explicit UsageFilter(const UsageWish& wish) : wish_(wish) {}

  // Whether these whole events can go as they are, and say nothing of interest.
  bool Passes(std::string_view events);

  // Looks at the first `size` bytes of `text`, which are whole events (the last one need not be,
  // at the end of a stream), takes out what is not to be shown, and returns how many bytes are
  // left of them.
  size_t Filter(std::string& text, size_t size);

  // The last that was told.
  const std::optional<EngineUsage>& usage() const { return usage_; }
  // Told in an event of its own: nothing that counts comes after it.
  bool final() const { return final_; }

  // What the stream was like, as far as it was read.
  bool saw_choices() const { return saw_choices_; }
  bool saw_error() const { return saw_error_; }
  bool saw_null() const { return saw_null_; }

 private:
  // What becomes of an event: from `from` to `to` it is replaced.
  struct Edit {
    size_t from = 0;
    size_t to = 0;
    std::string_view by;
  };

  void Note(std::string_view events);
  bool Mentions(std::string_view text) const;
  bool WantsNulls() const;
  class Event;
  Edit Judge(const Event& event);

  const UsageWish wish_;
  std::optional<EngineUsage> usage_;
  bool final_ = false;
  bool saw_choices_ = false;
  bool saw_error_ = false;
  bool saw_null_ = false;
  bool dropped_cr_ = false;  // the LF that may follow goes with what was dropped
};

}  // namespace fathom
