#include "lab/demo/token_window.h"

namespace fathom {

double TokenCounts::reused() const {
  return prompt == 0 ? 0 : static_cast<double>(cached) / static_cast<double>(prompt);
}

TokenCounts TokenCounts::operator-(const TokenCounts& earlier) const {
  return {.prompt = prompt - earlier.prompt,
          .cached = cached - earlier.cached,
          .recomputed = recomputed - earlier.recomputed};
}

TokenCounts& TokenCounts::operator+=(const TokenCounts& other) {
  prompt += other.prompt;
  cached += other.cached;
  recomputed += other.recomputed;
  return *this;
}

TokenCounts TokenWindow::Lately(const TokenCounts& now) const {
  return readings_.empty() ? now : now - readings_.front().counts;
}

void TokenWindow::Remember(const TokenCounts& now, Duration elapsed) {
  if (readings_.empty()) readings_.push_back({});  // everything was 0 when the demo began
  readings_.push_back({elapsed, now});
  while (readings_.size() > 1 && elapsed - readings_.front().at >= kLately) readings_.pop_front();
}

}  // namespace fathom
