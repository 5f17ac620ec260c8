// How much more may this render do?
//
// A budget that was overdrawn stays so: whatever is made afterwards is thrown away, because the
// interpreter asks before each of its steps. So the code in between need not carry the failure.
//
// Threads  Used by one render.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/result.h"

namespace fathom {

struct RenderLimits {
  size_t output = size_t{64} << 20;  // bytes of the result, and of any text on the way to it
  uint64_t steps = 20'000'000;       // expressions and statements, turns of loops, items made
  uint32_t depth = 64;               // macros in macros
  Duration time = Duration::max();   // looked at every few thousand steps
};

class RenderBudget {
 public:
  explicit RenderBudget(const RenderLimits& limits)
      : limits_(limits), begun_(std::chrono::steady_clock::now()) {}

  // false: no more.
  bool Spend(uint64_t steps) {
    if (steps > limits_.steps - spent_) {
      spent_ = limits_.steps;
      overdrawn_ = Overdrawn::kSteps;
    } else {
      const uint64_t looks = spent_ / kStepsPerLook;
      spent_ += steps;
      if (spent_ / kStepsPerLook != looks) LookAtClock();
    }
    return overdrawn_ == Overdrawn::kNot;
  }

  // A text of that size is about to be made, or looked through.
  bool SpendText(size_t bytes) {
    if (bytes > limits_.output) overdrawn_ = Overdrawn::kOutput;
    return Spend(bytes / kBytesPerStep);
  }

  bool overdrawn() const { return overdrawn_ != Overdrawn::kNot; }
  // Of a budget that is overdrawn.
  Error error() const {
    if (overdrawn_ == Overdrawn::kOutput) {
      return {Blame::kCaller,
              fmt::format("the template made a text of more than {} bytes", limits_.output)};
    }
    if (overdrawn_ == Overdrawn::kTime) {
      return {Blame::kCaller, fmt::format("the template ran for more than {} ms",
                                          std::chrono::floor<Milliseconds>(limits_.time).count())};
    }
    return {Blame::kCaller, fmt::format("the template ran for more than {} steps", limits_.steps)};
  }

  const RenderLimits& limits() const { return limits_; }

 private:
  using Milliseconds = std::chrono::milliseconds;
  enum class Overdrawn : uint8_t { kNot, kSteps, kOutput, kTime };

  static constexpr size_t kBytesPerStep = 64;
  static constexpr uint64_t kStepsPerLook = 4096;

  void LookAtClock() {
    if (std::chrono::steady_clock::now() - begun_ > limits_.time) overdrawn_ = Overdrawn::kTime;
  }

  RenderLimits limits_;
  TimePoint begun_;
  uint64_t spent_ = 0;
  Overdrawn overdrawn_ = Overdrawn::kNot;
};

}  // namespace fathom
