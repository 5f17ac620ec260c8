// Which id has the engine given the response that passes by?
//
//   a whole answer  the member "id" at its top
//   a stream        the member "id" of the response that the first events have
//
// Memory  No event is kept; of a whole answer, the id alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "codec/json_member.h"

namespace fathom {

class ResponseIdReader {
 public:
  // An engine that has not told it by then does not.
  static constexpr uint32_t kMostEvents = 8;

  ResponseIdReader() : finder_("id") {}

  // The next bytes of a whole answer.
  void Feed(std::string_view bytes) { finder_.Feed(bytes); }
  // The id, once the answer is complete.
  std::optional<std::string> OfWhole() const;

  // The next events of a stream, which are whole.
  void Read(std::string_view events);
  // Whether Read() must see the next ones.
  bool seeks() const { return !id_ && seen_ < kMostEvents; }
  const std::optional<std::string>& of_stream() const { return id_; }

 private:
  void ReadEvent(std::string_view data);

  JsonMemberFinder finder_;
  std::optional<std::string> id_;
  uint32_t seen_ = 0;
};

// The text of a JSON string that can be an id: not empty, and not longer than ResponsePins keeps.
std::optional<std::string> ReadResponseId(std::string_view json);

}  // namespace fathom
