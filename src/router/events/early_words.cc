#include "router/events/early_words.h"

#include <utility>

namespace fathom {

void EarlyWords::Keep(ByteBudget& budget, PolledWord word) {
  if (word.body.empty() || words_.size() == kMost) return;
  if (!held_) held_.emplace(budget);
  if (!held_->Hold(held_->held() + word.body.size())) return;
  words_.push_back(std::move(word));
}

std::vector<PolledWord> EarlyWords::Take() {
  held_.reset();
  return std::exchange(words_, {});
}

}  // namespace fathom
