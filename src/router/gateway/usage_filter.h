// How many prompt tokens did an engine find cached, and which parts of its stream may be sent?
//
// Engines report usage at the end of a stream if the request asks for it. If the router asked and
// the client did not, the client gets the same stream as without the question:
//
//   an event with usage and without choices   is dropped
//   "usage" beside choices                    becomes null, or is removed, as without the question
//   "usage":null                              is removed, if the engine writes it only when asked
//
// Every other byte is unchanged. The output consists of whole events, however the input was split.
//
// Memory  No event is kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "router/gateway/usage_report.h"

namespace fathom {

class SseEvent;

struct UsageWish {
  enum class Action : uint8_t { kIgnore, kRead, kTakeOut };
  Action action = Action::kIgnore;
  bool null_unasked = false;  // the engine writes "usage":null also when it is not asked
};

class UsageFilter {
 public:
  explicit UsageFilter(const UsageWish& wish) : wish_(wish) {}

  // Whether these whole events can be sent unchanged, and contain no usage.
  bool Passes(std::string_view events);

  // Reads the first `size` bytes of `text`, which are whole events (at the end of a stream the last
  // one may be incomplete), removes what must not be sent, and returns how many of the bytes are
  // left.
  size_t Filter(std::string& text, size_t size);

  // The last usage that was reported.
  const std::optional<EngineUsage>& usage() const { return usage_; }
  // Reported in a separate event: no later event has a newer one.
  bool final() const { return final_; }

  // Properties of the stream, as far as it was read.
  bool saw_choices() const { return saw_choices_; }
  bool saw_error() const { return saw_error_; }
  bool saw_null() const { return saw_null_; }

 private:
  // The change to an event: the bytes from `from` to `to` are replaced.
  struct Edit {
    size_t from = 0;
    size_t to = 0;
    std::string_view by;
  };

  void Note(std::string_view events);
  bool Mentions(std::string_view text) const;
  bool WantsNulls() const;
  Edit Judge(const SseEvent& event);

  const UsageWish wish_;
  std::optional<EngineUsage> usage_;
  bool final_ = false;
  bool saw_choices_ = false;
  bool saw_error_ = false;
  bool saw_null_ = false;
  bool dropped_cr_ = false;  // the LF that may follow is dropped too
};

}  // namespace fathom
