#include "router/gateway/search_board.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace fathom {

std::string_view Name(SearchResult::Kind kind) {
  constexpr std::array<std::string_view, kSearchResults> kNames = {"found", "nowhere", "anyone",
                                                                   "unanswered", "overload"};
  return kNames[static_cast<size_t>(kind)];
}

uint64_t SearchBoard::KeyOf(std::string_view id, std::string_view model) const {
  const uint64_t seed = XXH3_64bits_withSeed(model.data(), model.size(), secret_);
  return XXH3_64bits_withSeed(id.data(), id.size(), seed);
}

SearchBoard::Turn SearchBoard::Join(std::string_view id, std::string_view model, size_t workers,
                                    TimePoint now) {
  const uint64_t key = KeyOf(id, model);
  const std::lock_guard lock(mutex_);
  if (auto known = Recall(key, now)) return {.known = known};
  if (const auto found = open_.find(key); found != open_.end()) return {.search = found->second};
  if (open_.size() >= kMostOpen || !TakeBudget(workers, now)) {
    return {.known = SearchResult{SearchResult::Kind::kOverload}};
  }
  auto search = std::make_shared<Search>();
  search->key = key;
  open_.emplace(key, search);
  return {.search = std::move(search), .leads = true};
}

void SearchBoard::Close(Search& search, const SearchResult& result, TimePoint now) {
  using Kind = SearchResult::Kind;
  const std::lock_guard lock(mutex_);
  search.result = result;
  // A worker may answer at the next attempt.
  if (result.kind != Kind::kUnanswered && !by_key_.contains(search.key)) {
    Expire(now);
    by_age_.push_back({search.key, result, now + kRemembered});
    by_key_.emplace(search.key, std::prev(by_age_.end()));
  }
  for (WakeableWait* const wait : search.waiting) wait->Wake();
  search.waiting.clear();
  open_.erase(search.key);
}

Task<std::optional<SearchResult>> SearchBoard::Await(std::shared_ptr<Search> search, Loop& loop,
                                                     TimePoint deadline) {
  WakeableWait wait(loop, deadline);
  {
    const std::lock_guard lock(mutex_);
    if (search->result) co_return search->result;
    search->waiting.push_back(&wait);
  }
  co_await wait;
  const std::lock_guard lock(mutex_);
  search->waiting.remove(&wait);
  co_return search->result;
}

std::optional<SearchResult> SearchBoard::Recall(uint64_t key, TimePoint now) {
  Expire(now);
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? std::nullopt : std::optional(found->second->result);
}

void SearchBoard::Expire(TimePoint now) {
  while (!by_age_.empty() && (by_age_.front().until <= now || by_age_.size() >= kMostRemembered)) {
    by_key_.erase(by_age_.front().key);
    by_age_.pop_front();
  }
}

bool SearchBoard::TakeBudget(size_t workers, TimePoint now) {
  const double seconds = counted_ == TimePoint{} ? 0 : Seconds(now - counted_);
  budget_ = std::min(kBurst, budget_ + std::max(seconds, 0.0) * kPerSecond);
  counted_ = std::max(counted_, now);
  const double cost = 1 + static_cast<double>(workers / kFleetUnit);
  if (budget_ < cost) return false;
  budget_ -= cost;
  return true;
}

}  // namespace fathom
