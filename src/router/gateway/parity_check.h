// Has this worker's engine the tokens that the router computes, before it gets requests?
//
// When a worker is admitted, and again when it comes back or may be another process, its engine is
// asked for the tokens of the probe prompts (router/gateway/parity_probes.h), one after the other:
//
//   vLLM     /v1/.../render, where it was started with --enable-scale-out; else as SGLang
//   SGLang   /tokenize; for /v1/messages also /v1/messages/count_tokens, which shows how the engine
//            itself reads such a request, but gives a count only
//   others   /tokenize, if they have it. TensorRT-LLM has none: nothing is asked
//
// A difference is confirmed by asking once more: templates may write the time. What was found goes
// to the worker's ranks and to the ParityBoard. Equal counts and equal tokens of the converted chat
// are agreement of /v1/messages; for /v1/responses, which only `render` shows as the engine reads
// it, an equal conversion proves nothing, and the first events are the check.
//
// Cost     About ten small requests per admission. kMostAtOnce workers are asked at a time; the
//          others wait for their turn, and get requests after AdmissionCheck::kHeldAtMost.
//          Verdicts are not shared between workers: each may have been started with another chat
//          template.
// Repeats  Every kAgainAfter while an engine did not answer or differs, and whenever the model has
//          other files, or another build of its tokenizer was chosen.
// Threads  The control loop.
// Memory   An entry per worker. An answer of more than kMaxAnswer bytes is an error.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/log.h"
#include "metrics/registry.h"
#include "router/discovery/admission_check.h"
#include "router/fleet/fleet.h"
#include "router/fleet/token_parity.h"
#include "router/gateway/parity_probes.h"
#include "router/gateway/token_source.h"
#include "router/gateway/tokenizer_builds.h"
#include "router/gateway/worker_call.h"
#include "text/model/model_library.h"

namespace fathom {

class ParityCheck final : public AdmissionCheck {
 public:
  static constexpr size_t kMostAtOnce = 32;  // workers
  static constexpr size_t kMostModels = 4;   // of one worker, with different files
  static constexpr size_t kMaxAnswer = size_t{256} << 10;
  static constexpr Duration kPatience = std::chrono::seconds(1);  // for one answer
  static constexpr Duration kAgainAfter = std::chrono::seconds(60);

  // `forwards_ids`: prompts that the engine gets as ids of the operator's files need not be
  // compared.
  ParityCheck(Loop& control, Resolver& resolver, const Directory& directory, const Fleet& fleet,
              const ModelLibrary& models, TokenizerBuilds& builds, ParityBoard& board,
              Registry& registry, Log& log, bool forwards_ids, Duration again_after = kAgainAfter);

  bool Concerns(const Worker& worker) const override;
  // A later one for the same worker replaces an earlier one, whose `done` is then not called.
  void Begin(const std::shared_ptr<Worker>& worker, std::function<void()> done) override;
  void Repeat(const std::shared_ptr<Worker>& worker) override;
  void Forget(WorkerId id) override;

  // Workers that are being asked, and that wait for their turn.
  size_t running() const { return running_; }
  size_t waiting() const { return queue_.size(); }

 private:
  // A model of a worker, and the files that the router has for it.
  struct Subject {
    std::vector<std::string> models;  // all that have these files; an empty name: it names none
    std::shared_ptr<const LanguageModel> files;
    bool found = false;  // by the router itself: they are not used before they were compared
    std::shared_ptr<const LanguageModel> build;  // of the files, whose tokens are compared
    bool operator==(const Subject&) const = default;
    const std::string& model() const { return models.front(); }  // that is asked about
  };

  // One check of one worker.
  struct Check {
    std::shared_ptr<Worker> worker;
    std::vector<Subject> subjects;
    bool repeated = false;  // the worker already gets requests
    std::function<void()> done;
    bool outdated = false;
  };

  struct Standing {
    std::shared_ptr<Check> check;  // null: none is under way
    std::vector<Subject> subjects;
    TimePoint again = kNever;
  };

  // What an engine did with one probe prompt.
  enum class Outcome : uint8_t {
    kAgrees,
    kDiffers,
    kInconclusive,  // it was refused, or equal in a way that proves nothing
    kUnanswered,
    kUnsupported,
  };
  static constexpr size_t kOutcomes = 5;
  struct Inquiry;

  std::vector<Subject> SubjectsOf(const Worker& worker) const;
  void Start(const std::shared_ptr<Worker>& worker, std::vector<Subject> subjects, bool repeated,
             std::function<void()> done);
  void StartNext();
  Task<void> Run(std::shared_ptr<Check> check);
  bool UsesOtherBuild(const Check& check) const;
  void Publish(Check& check, const std::vector<ParityReport>& reports, bool complete);
  bool GetsIds(const Inquiry& inquiry, const ParityProbe& probe) const;
  // False: the engine did not answer everything.
  Task<bool> Inquire(Inquiry& inquiry);
  Task<Outcome> CompareOnce(Inquiry& inquiry, const ParityProbe& probe);
  Task<TokenAnswer> AskForTokens(Inquiry& inquiry, const ParityProbe& probe,
                                 const PromptFields& parts);
  Task<TokenAnswer> AskForRendering(Inquiry& inquiry, const ParityProbe& probe);
  Task<Outcome> CompareCounts(Inquiry& inquiry, const ParityProbe& probe, size_t ours);
  Task<void> ChooseBuild(Inquiry& inquiry);

  Loop& loop_;
  const Fleet& fleet_;
  const ModelLibrary& models_;
  TokenizerBuilds& builds_;
  ParityBoard& board_;
  Log& log_;
  const bool forwards_ids_;
  const Duration again_after_;
  WorkerCalls calls_;
  std::array<Counter*, kOutcomes> outcomes_{};
  std::unordered_map<WorkerId, Standing> standings_;
  std::deque<std::shared_ptr<Check>> queue_;
  size_t running_ = 0;
  bool starting_ = false;            // StartNext() is under way
  std::vector<std::string> agreed_;  // models whose agreement was logged
};

}  // namespace fathom
