// For tests: waits for something that another thread does.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace fathom {

// Waits until the condition holds. False if it does not within ten seconds.
inline bool Becomes(const std::function<bool()>& condition) {
  for (int i = 0; i < 10'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace fathom
