#include "router/events/early_words.h"

#include <utility>

namespace fathom {

void EarlyWords::Keep(ByteBudget& budget, PolledWord word) {
  if (word.body.empty() || words_.size() == kMost) return;
  if (!held_) held_.emplace(budget);
  // Its own sum: the budget counts nothing as long as little is held.
  if (!held_->Hold(bytes_ + word.body.size())) return;
  bytes_ += word.body.size();
  words_.push_back(std::move(word));
}

std::vector<PolledWord> EarlyWords::Take() {
  held_.reset();
  bytes_ = 0;
  return std::exchange(words_, {});
}

}  // namespace fathom
