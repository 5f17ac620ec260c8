#include "io/net/name_desk.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace fathom {
namespace {

NameDesk::Answer AnswerOf(const NameDesk::Addresses& addresses) {
  return NameAnswer{.addresses = *addresses};
}

}  // namespace

NameDesk::NameDesk(Log* log) : log_(log), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  CHECK(wake_ >= 0);
}

NameDesk::~NameDesk() { ::close(wake_); }

std::optional<NameDesk::Answer> NameDesk::Enter(Asker& asker) {
  const TimePoint now = Now();
  const std::lock_guard lock(mutex_);
  TimePoint until = asker.deadline_;
  const bool may_be_old = asker.wants_ == Wants::kUsable;
  const NameCache::Entry* const entry = may_be_old ? cache_.Find(asker.name_) : nullptr;
  if (entry != nullptr) {
    CheckFilesSometimes(now);
    if (auto known = FromCache(*entry, now)) return known;
    if (entry->Usable(now)) asker.stale_ = entry->addresses;
  }
  const Question* const question = Join(asker, now);
  if (question == nullptr) {
    if (asker.stale_) return AnswerOf(asker.stale_);
    return NetFail(NetCause::kNoResources, "cannot resolve '{}': {}", asker.name_,
                   stopping_ ? "the program is ending" : "too many lookups are open");
  }
  if (asker.stale_) until = std::min(until, question->begun + kRefreshHeadStart);
  asker.wait_.emplace(asker.loop_, until);
  return std::nullopt;
}

std::optional<NameDesk::Answer> NameDesk::FromCache(const NameCache::Entry& entry, TimePoint now) {
  if (entry.Fresh(now)) return AnswerOf(entry.addresses);
  if (!entry.JustFailed(now)) return std::nullopt;
  if (entry.Usable(now)) return AnswerOf(entry.addresses);
  return std::unexpected(*entry.failure);
}

NameDesk::Question* NameDesk::Join(Asker& asker, TimePoint now) {
  if (stopping_) return nullptr;
  const bool open = questions_.contains(asker.name_);
  if (!open && questions_.size() >= kMaxQuestions) return nullptr;
  Question& question = questions_[asker.name_];
  if (!open) {
    question.begun = now;
    to_start_.push_back(asker.name_);
    WakeThread();
  }
  question.askers.push_back(&asker);
  return &question;
}

NameDesk::Answer NameDesk::Leave(Asker& asker, WakeCause cause) {
  const TimePoint now = Now();
  std::optional<StaleUse> news;
  {
    const std::lock_guard lock(mutex_);
    if (!asker.answer_) {
      const auto question = questions_.find(asker.name_);
      if (question != questions_.end()) question->second.askers.remove(&asker);
    }
    const bool answered = asker.answer_ && asker.answer_->has_value();
    const bool gone =
        asker.answer_ && !answered && asker.answer_->error().cause == NetCause::kNoSuchName;
    if (answered || gone || !asker.stale_ || cause == WakeCause::kCancelled) {
      if (asker.answer_) return *std::move(asker.answer_);
      return Unanswered(asker, cause);
    }
    news = NoteStaleUse(asker.name_, now);
  }
  if (news) LogStaleUse(asker.name_, *news);
  return AnswerOf(asker.stale_);
}

// A refresh that only takes longer than its head start is no news.
std::optional<NameDesk::StaleUse> NameDesk::NoteStaleUse(const std::string& name, TimePoint now) {
  constexpr Duration kSlow = std::chrono::seconds(1);
  NameCache::Entry* const entry = cache_.Find(name);
  if (entry == nullptr) return std::nullopt;
  const auto question = questions_.find(name);
  const bool slow = question != questions_.end() && now - question->second.begun > kSlow;
  if (!slow && !entry->failure) return std::nullopt;
  if (std::exchange(entry->stale_use_logged, true)) return std::nullopt;
  return StaleUse{entry->failure ? entry->failure->what : "no name server has answered yet",
                  now - entry->found_at};
}

void NameDesk::LogStaleUse(const std::string& name, const StaleUse& use) const {
  if (log_ == nullptr) return;
  log_->Warn("DNS lookup failed; the last known addresses are used",
             {{"name", name},
              {"reason", use.reason},
              {"age_seconds", Seconds(use.age)},
              {"at_most_seconds", Seconds(NameCache::kStaleFor)}});
}

bool NameDesk::WasStale(const std::string& name) {
  const NameCache::Entry* const entry = cache_.Find(name);
  return entry != nullptr && entry->stale_use_logged;
}

void NameDesk::LogWorksAgain(const std::string& name) const {
  if (log_ != nullptr) log_->Info("DNS lookup works again", {{"name", name}});
}

std::unexpected<NetError> NameDesk::Unanswered(const Asker& asker, WakeCause cause) {
  if (cause == WakeCause::kCancelled) return NetFail(NetCause::kCancelled, "cancelled");
  return NetFail(NetCause::kNameTimeout, "cannot resolve '{}': no name server answered in time",
                 asker.name_);
}

void NameDesk::CheckFilesSometimes(TimePoint now) {
  if (now - files_checked_ < kCheckFilesEvery) return;
  files_checked_ = now;
  WakeThread();
}

void NameDesk::WakeThread() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(wake_, &one, sizeof(one));
}

std::optional<std::vector<std::string>> NameDesk::TakeQuestions() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = ::read(wake_, &count, sizeof(count));
  const std::lock_guard lock(mutex_);
  if (stopping_) return std::nullopt;
  return std::exchange(to_start_, {});
}

// Wake() is the last use of an asker: its coroutine takes the lock before it ends.
void NameDesk::Tell(Question& question, const Answer& answer, bool complete) {
  std::erase_if(question.askers, [&](Asker* asker) {
    if (!complete && asker->wants_ == Wants::kComplete) return false;
    asker->answer_.emplace(answer);
    asker->wait_->Wake();
    return true;
  });
}

void NameDesk::PublishPartial(const std::string& name, const NameAnswer& answer) {
  bool works_again = false;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    works_again = WasStale(name);
    cache_.PutFound(name, answer, NameSource::kNameServer, Now());
    const auto question = questions_.find(name);
    if (question != questions_.end()) Tell(question->second, answer, false);
  }
  if (works_again) LogWorksAgain(name);
}

void NameDesk::Publish(const std::string& name, const Answer& answer, NameSource source) {
  const TimePoint now = Now();
  bool works_again = false;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    works_again = answer && WasStale(name);
    if (answer) {
      cache_.PutFound(name, *answer, source, now);
    } else {
      cache_.PutFailure(name, answer.error(), now);
    }
    const auto question = questions_.find(name);
    if (question != questions_.end()) {
      Tell(question->second, answer, true);
      questions_.erase(question);
    }
  }
  if (works_again) LogWorksAgain(name);
}

void NameDesk::OnNewSources() {
  const std::lock_guard lock(mutex_);
  cache_.OnNewSources(Now());
}

void NameDesk::Stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  WakeThread();
}

}  // namespace fathom
