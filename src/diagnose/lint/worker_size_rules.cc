// block-size-mismatch of one worker with itself: does Dynamo's worker know the block size of the
// TensorRT-LLM that it runs?
#include <fmt/format.h>

#include <array>

#include "diagnose/lint/remedy.h"
#include "diagnose/lint/rules.h"

namespace fathom {
namespace {

constexpr std::array kAsksTheEngine = {1u, 5u};

// Without a file that may say otherwise, and without a version that would not care.
bool Differs(const PlannedEngine& engine) {
  const EngineSettings& settings = engine.settings;
  return settings.worker_block_size.value && settings.block_size.value &&
         *settings.worker_block_size.value != *settings.block_size.value &&
         settings.publisher.enabled.value == true &&
         !AtLeast(engine.program->version, kAsksTheEngine);
}

Remedy TellTheWorker(const Plan& plan, const PlannedEngine& engine) {
  const Written& written = *engine.settings.worker_block_size.written;
  const std::string size = std::to_string(*engine.settings.block_size.value);
  Remedy remedy;
  remedy.fix.what = fmt::format("Set {} of {} to {}.", written.name, Called(*engine.program), size);
  remedy.fix.setting = fmt::format("{} {}", written.name, size);
  remedy.fix.cost = "The worker restarts and its cache is lost.";
  remedy.fix.verify = "The worker's log has no \"greater than kv_block_size\".";
  remedy.edits = Rewrite(plan, written, size);
  return remedy;
}

void AddFinding(const Plan& plan, const PlannedEngine& engine, LintFindings& findings) {
  const EngineSettings& settings = engine.settings;
  Finding finding =
      MakeFinding(FindingId::kBlockSizeMismatch, engine.program->name,
                  fmt::format("{} expects a block size of {} tokens, but its engine has {}",
                              Called(*engine.program), *settings.worker_block_size.value,
                              *settings.block_size.value));
  finding.why =
      "Dynamo's worker drops the events of blocks whose size differs from its setting: no prefix "
      "is ever found, and no error is reported. Since Dynamo 1.5 it asks the engine.";
  finding.place = PlaceOf(settings.worker_block_size, *engine.program);
  finding.evidence.push_back(fmt::format("The worker: {} tokens per block ({})",
                                         *settings.worker_block_size.value,
                                         Origin(settings.worker_block_size)));
  finding.evidence.push_back(fmt::format("TensorRT-LLM: {} tokens per block ({})",
                                         *settings.block_size.value, Origin(settings.block_size)));
  findings.push_back(WithRemedies(plan, std::move(finding),
                                  {TellTheWorker(plan, engine),
                                   SetBlockSize(plan, engine, *settings.worker_block_size.value)}));
}

}  // namespace

void CheckWorkerSizes(const Plan& plan, LintFindings& findings) {
  for (const PlannedEngine& engine : plan.engines()) {
    if (Differs(engine)) AddFinding(plan, engine, findings);
  }
}

}  // namespace fathom
