#include "router/gateway/local_tokenizer.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/wall_time.h"
#include "io/net/wakeable_wait.h"
#include "router/gateway/chat_fields.h"

namespace fathom {
namespace {

// Up to this text size, an encoder keeps its buffers for the next text.
constexpr size_t kMostRemembered = size_t{1} << 20;

std::string TooLong(size_t bytes) {
  return fmt::format("{} bytes of text, of at most {}", bytes, LocalTokenizer::kLongest);
}

}  // namespace

// One prompt in progress. Belongs to the loop or to a thread, never to both.
struct LocalTokenizer::Work {
  std::shared_ptr<const LanguageModel> model;
  PartsSource source;
  LanguageModel::Manner manner;
  PromptFields fields;
  std::string text;  // the text that `fields` point to, once the work has been handed over

  std::unique_ptr<PromptParts> parts;
  std::optional<Inexact> inexact;
  std::string problem;
  bool overdrawn = false;

  // Only used by the loop.
  WakeableWait* waiting = nullptr;
  bool done = false;
};

void LocalTokenizer::Render(Work& work, const RenderLimits& limits) {
  work.manner.limits = limits;
  const PromptFields& fields = work.fields;
  RenderedPrompt rendered =
      fields.prompt.empty()
          ? work.model->RenderChat(ChatOf(fields), work.manner)
          : work.model->RenderText(fields.prompt, fields.add_special_tokens, work.manner.dialect);
  work.inexact = rendered.inexact;
  work.problem = std::move(rendered.problem);
  work.overdrawn = rendered.overdrawn;
  if (rendered.prompt.text.empty() && rendered.inexact) return;
  work.parts = std::make_unique<PromptParts>(work.source, std::move(rendered.prompt));
}

bool LocalTokenizer::RenderAtOnce(Work& work) {
  Render(work, {.steps = kMostStepsAtOnce});
  if (!work.overdrawn) return true;
  work.inexact.reset();
  work.problem.clear();
  return false;
}

void LocalTokenizer::Encode(Work& work) {
  if (!work.parts || work.parts->missing_bytes() == 0) return;
  const size_t bytes = work.parts->missing_bytes();
  LanguageModel::Lease encoder = work.model->Borrow();
  const auto completed = work.parts->Complete(*encoder);
  if (bytes > kMostRemembered) encoder.Drop();
  if (completed) return;
  work.inexact = Inexact::kTooLong;
  work.problem = completed.error().what;
}

// False: too much work is queued.
bool LocalTokenizer::HandOver(const std::shared_ptr<Work>& work, size_t bytes) {
  const auto run = [work, &loop = loop_] {
    if (!work->parts) Render(*work, {.time = kLongestRender});
    Encode(*work);
    loop.Post([work] {
      work->done = true;
      if (work->waiting != nullptr) work->waiting->WakeNow();
    });
  };
  return side_work_.Run(run, bytes);
}

Task<LocalTokenizer::Reading> LocalTokenizer::Read(std::shared_ptr<const LanguageModel> model,
                                                   const PromptFields& fields, const Manner& manner,
                                                   TimePoint deadline,
                                                   std::vector<TokenId>& tokens) {
  const size_t before = tokens.size();
  const size_t bytes = BytesOf(fields);
  if (bytes > kLongest) co_return Reading{.inexact = Inexact::kTooLong, .problem = TooLong(bytes)};
  const PartsSource source{model->tokenizer(), cache_, model->fingerprint(), secret_};
  const LanguageModel::Manner how{.dialect = manner.dialect,
                                  .literal_user_text = manner.literal_user_text,
                                  .reasoning_parser = manner.reasoning_parser,
                                  .now = LocalSecondsNow()};
  const auto work = std::make_shared<Work>(std::move(model), source, how, fields);
  const bool rendered = bytes <= kMostAtOnce && RenderAtOnce(*work);
  if (rendered && (!work->parts || work->parts->missing_bytes() <= kMostNewAtOnce)) {
    Encode(*work);
    co_return Take(*work, tokens);
  }
  // The part known so far, in case the rest comes too late.
  Reading known;
  if (work->parts) known = Take(*work, tokens);
  known.whole = false;
  known.inexact = Inexact::kTooLate;
  if (!rendered) {
    work->text.reserve(bytes);
    work->fields = CopyOf(fields, work->text);
  }
  if (!HandOver(work, bytes)) {
    known.inexact = Inexact::kOverload;
    co_return known;
  }
  WakeableWait wait(loop_, deadline);
  work->waiting = &wait;
  co_await wait;
  work->waiting = nullptr;
  if (!work->done) co_return known;
  tokens.resize(before);
  co_return Take(*work, tokens);
}

LocalTokenizer::Reading LocalTokenizer::Take(const Work& work, std::vector<TokenId>& tokens) {
  Reading reading{.whole = !work.inexact, .inexact = work.inexact, .problem = work.problem};
  if (!work.parts) return reading;
  work.parts->AppendTo(tokens);
  reading.places = work.parts->Places();
  return reading;
}

}  // namespace fathom
