#include "gateway/local_tokenizer.h"

#include <fmt/format.h>

#include <coroutine>
#include <string>
#include <utility>

#include "base/wall_time.h"
#include "gateway/chat_fields.h"

namespace fathom {
namespace {

// What an encoder needs for a text of this size it may keep for the next one.
constexpr size_t kMostRemembered = size_t{1} << 20;

std::string TooLong(size_t bytes) {
  return fmt::format("{} bytes of text, of at most {}", bytes, LocalTokenizer::kLongest);
}

}  // namespace

// One prompt on its way. Belongs to the loop or to a thread, never to both.
struct LocalTokenizer::Work {
  std::shared_ptr<const LanguageModel> model;
  PartsSource source;
  LanguageModel::Manner manner;
  PromptFields fields;
  std::string text;  // what they point to, once the work is handed over

  std::unique_ptr<PromptParts> parts;
  std::optional<Inexact> inexact;
  std::string problem;

  // The loop's alone.
  Wait* waiting = nullptr;
  bool done = false;
};

// A request that waits for its prompt, or for its deadline.
class LocalTokenizer::Wait {
 public:
  Wait(Work& work, Loop& loop, TimePoint deadline)
      : work_(work), loop_(loop), deadline_(deadline), timer_(*this) {}
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> waiting) {
    waiting_ = waiting;
    work_.waiting = this;
    loop_.timers().Arm(timer_, deadline_);
  }
  void await_resume() const {}

  void Resume() {
    work_.waiting = nullptr;
    timer_.Disarm();
    waiting_.resume();
  }

 private:
  struct Deadline : Timer {
    explicit Deadline(Wait& w) : Timer(&OnFire), wait(w) {}
    static void OnFire(Timer& timer) { static_cast<Deadline&>(timer).wait.Resume(); }
    Wait& wait;
  };

  Work& work_;
  Loop& loop_;
  const TimePoint deadline_;
  Deadline timer_;
  std::coroutine_handle<> waiting_;
};

void LocalTokenizer::Render(Work& work) {
  const PromptFields& fields = work.fields;
  RenderedPrompt rendered =
      fields.prompt.empty()
          ? work.model->RenderChat(ChatOf(fields), work.manner)
          : work.model->RenderText(fields.prompt, fields.add_special_tokens, work.manner.dialect);
  work.inexact = rendered.inexact;
  work.problem = std::move(rendered.problem);
  if (rendered.prompt.text.empty() && rendered.inexact) return;
  work.parts = std::make_unique<PromptParts>(work.source, std::move(rendered.prompt));
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

// False: too much is being done already.
bool LocalTokenizer::HandOver(const std::shared_ptr<Work>& work, size_t bytes) {
  const auto run = [work, &loop = loop_] {
    if (!work->parts) Render(*work);
    Encode(*work);
    loop.Post([work] {
      work->done = true;
      if (work->waiting != nullptr) work->waiting->Resume();
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
  const LanguageModel::Manner how{manner.dialect, manner.literal_user_text, LocalSecondsNow()};
  const auto work = std::make_shared<Work>(std::move(model), source, how, fields);
  if (bytes <= kMostAtOnce) Render(*work);
  const bool rendered = work->parts || work->inexact;
  if (rendered && (!work->parts || work->parts->missing_bytes() <= kMostNewAtOnce)) {
    Encode(*work);
    co_return Take(*work, tokens);
  }
  // What is known so far, in case that the rest comes too late.
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
  Wait wait(*work, loop_, deadline);
  co_await wait;
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
