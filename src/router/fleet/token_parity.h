// Has an engine the tokens that the router computes from the model's files, as far as it was asked?
//
// When a worker is admitted, it is asked for the tokens of a few probe prompts
// (router/gateway/parity_check.h). A ParityReport has what one worker answered, for each kind of
// prompt; its ranks take it as evidence (router/fleet/token_agreement.h). The ParityBoard has the
// same for each model, for readers that must decide whether files can be used.
//
// Threads  ParityBoard: any. any_differs() takes no lock.
// Memory   ParityBoard: an entry per worker and model that was asked about.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "router/fleet/served_request.h"
#include "router/fleet/trust_evidence.h"

namespace fathom {

enum class ParityVerdict : uint8_t {
  kUnknown,    // not asked yet, or not answered
  kAgrees,     // the tokens of the probe prompts are the same
  kDiffers,    // those of at least one are not
  kCannotAsk,  // the engine has no endpoint for it: its first events are the check
};

using ParityVerdicts = std::array<ParityVerdict, kPromptKinds>;

struct ParityReport {
  ParityVerdicts verdicts{};
  std::array<TokenDifference, kPromptKinds> differences{};  // where the verdict is kDiffers

  ParityVerdict Of(PromptKind kind) const { return verdicts[static_cast<size_t>(kind)]; }
};

class ParityBoard {
 public:
  // No engine will be asked: in this mode wrong tokens do little harm. Before requests are served.
  void NobodyAsks() { nobody_asks_ = true; }
  // Replaces what was known of this worker and model.
  void Publish(WorkerId worker, std::string_view model, const ParityVerdicts& verdicts);
  void Forget(WorkerId worker);

  // kAgrees if an engine of the model agrees: where another one differs, only that one is doubted.
  // kDiffers if one differs and none agrees. Then kCannotAsk, if one cannot be asked.
  ParityVerdict Of(std::string_view model, PromptKind kind) const;
  // Of all kinds of prompts: kDiffers if one kind differs, else kAgrees if one agrees.
  ParityVerdict Of(std::string_view model) const;
  // Whether Of() is kDiffers for any model and kind.
  bool any_differs() const { return any_differs_.load(std::memory_order_relaxed); }

 private:
  struct Model {
    std::map<WorkerId, ParityVerdicts> workers;
    ParityVerdicts together{};
  };

  // With mutex_ held.
  void Sum(Model& model);
  void NoteDifferences();
  const Model* Find(std::string_view model) const;

  bool nobody_asks_ = false;
  mutable std::mutex mutex_;
  std::map<std::string, Model, std::less<>> models_;  // guarded by mutex_
  std::atomic<bool> any_differs_{false};              // relaxed, pairs with nothing
};

}  // namespace fathom
