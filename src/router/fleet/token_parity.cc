#include "router/fleet/token_parity.h"

#include <algorithm>

namespace fathom {
namespace {

// The first of these that any worker has counts.
constexpr std::array kAmongWorkers = {ParityVerdict::kAgrees, ParityVerdict::kDiffers,
                                      ParityVerdict::kCannotAsk};
constexpr std::array kAmongKinds = {ParityVerdict::kDiffers, ParityVerdict::kAgrees,
                                    ParityVerdict::kCannotAsk};

bool Has(const ParityVerdicts& verdicts, ParityVerdict verdict) {
  return std::ranges::find(verdicts, verdict) != verdicts.end();
}

}  // namespace

void ParityBoard::Publish(WorkerId worker, std::string_view model, const ParityVerdicts& verdicts) {
  const std::lock_guard lock(mutex_);
  Model& entry = models_[std::string(model)];
  entry.workers[worker] = verdicts;
  Sum(entry);
  NoteDifferences();
}

void ParityBoard::Forget(WorkerId worker) {
  const std::lock_guard lock(mutex_);
  for (auto& [name, model] : models_) {
    if (model.workers.erase(worker) > 0) Sum(model);
  }
  std::erase_if(models_, [](const auto& entry) { return entry.second.workers.empty(); });
  NoteDifferences();
}

void ParityBoard::Sum(Model& model) {
  for (size_t i = 0; i < kPromptKinds; ++i) {
    model.together[i] = ParityVerdict::kUnknown;
    for (const ParityVerdict verdict : kAmongWorkers) {
      const auto has = [&](const auto& entry) { return entry.second[i] == verdict; };
      if (std::ranges::none_of(model.workers, has)) continue;
      model.together[i] = verdict;
      break;
    }
  }
}

void ParityBoard::NoteDifferences() {
  const bool any = std::ranges::any_of(models_, [](const auto& entry) {
    return Has(entry.second.together, ParityVerdict::kDiffers);
  });
  any_differs_.store(any, std::memory_order_relaxed);
}

// A worker that does not name its models serves all of them.
const ParityBoard::Model* ParityBoard::Find(std::string_view model) const {
  auto found = models_.find(model);
  if (found == models_.end()) found = models_.find(std::string_view());
  return found == models_.end() ? nullptr : &found->second;
}

ParityVerdict ParityBoard::Of(std::string_view model, PromptKind kind) const {
  if (nobody_asks_) return ParityVerdict::kCannotAsk;
  const std::lock_guard lock(mutex_);
  const Model* const found = Find(model);
  return found == nullptr ? ParityVerdict::kUnknown : found->together[static_cast<size_t>(kind)];
}

ParityVerdict ParityBoard::Of(std::string_view model) const {
  if (nobody_asks_) return ParityVerdict::kCannotAsk;
  const std::lock_guard lock(mutex_);
  const Model* const found = Find(model);
  if (found == nullptr) return ParityVerdict::kUnknown;
  for (const ParityVerdict verdict : kAmongKinds) {
    if (Has(found->together, verdict)) return verdict;
  }
  return ParityVerdict::kUnknown;
}

}  // namespace fathom
