// Do the numbers of a stream follow each other?
#pragma once

#include <cstdint>
#include <optional>

namespace fathom {

class SequenceWatch {
 public:
  enum class Step : uint8_t {
    kFollows,  // also the first one, whatever it is
    kGap,      // `from` to `to` did not come
    kBack,     // `from` was followed by `to`, which is not larger: a new publisher
  };
  struct Outcome {
    Step step = Step::kFollows;
    uint64_t from = 0;
    uint64_t to = 0;
  };

  Outcome Take(uint64_t sequence) {
    const std::optional<uint64_t> last = last_;
    last_ = sequence;
    if (!last || (sequence > *last && sequence - *last == 1)) return {};
    if (sequence <= *last) return {Step::kBack, *last, sequence};
    return {Step::kGap, *last + 1, sequence - 1};
  }

 private:
  std::optional<uint64_t> last_;
};

}  // namespace fathom
