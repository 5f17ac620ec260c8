// Which number does the next event of a stream of /v1/responses have?
//
// Its events are numbered, and clients may insist on it: so is the error that ends it in place of
// the engine.
#pragma once

#include <cstdint>
#include <string_view>

namespace fathom {

class ResponseSequence {
 public:
  // Whole events that are sent.
  void Read(std::string_view events);

  uint64_t next() const { return next_; }

 private:
  uint64_t next_ = 0;
};

}  // namespace fathom
