#include "gateway/token_complaints.h"

#include "gateway/tokenize_metrics.h"

namespace fathom {
namespace {

std::string_view ComplaintOf(TokenFailure reason) {
  switch (reason) {
    case TokenFailure::kTimeout:
      return "Text prompts are not tokenized in time and are routed by load. Raise "
             "--tokenize-timeout, or send prompts as token ids";
    case TokenFailure::kRefused:
      return "Workers refuse to tokenize text prompts, which are routed by load. If the requests "
             "are in order the engine is too old to tokenize chats (SGLang before 0.5.12): update "
             "it, or send prompts as token ids";
    case TokenFailure::kUnsupported:
      return "No worker of this model can tokenize: text prompts are routed by load, whatever the "
             "caches hold. Send prompts as token ids, or serve the model with an engine that has "
             "/tokenize";
    case TokenFailure::kError:
      return "Workers fail to tokenize text prompts, which are routed by load. Look at what "
             "/tokenize answers on the workers; one that wants an API key needs api_key_env in its "
             "workers: entry";
    case TokenFailure::kOverload:
      return "Too many text prompts, or too long ones, wait to be tokenized: more are routed by "
             "load. Send prompts as token ids, or add workers";
  }
  std::unreachable();
}

}  // namespace

void TokenComplaints::Miss(std::string_view model, TokenFailure reason, TimePoint now) {
  Key key(reason, model.size() > kLongestName ? kOthers : model);
  uint64_t requests = 0;
  {
    const std::lock_guard lock(mutex_);
    Entry& entry = EntryOf(key, now);
    ++entry.unsaid;
    if (now < entry.due) return;
    entry.due = now + kQuiet;
    requests = std::exchange(entry.unsaid, 0);
  }
  log_.Warn(ComplaintOf(reason),
            {{"model", key.second}, {"reason", Name(reason)}, {"requests", requests}});
}

// Under another name where too much is remembered already.
TokenComplaints::Entry& TokenComplaints::EntryOf(Key& key, TimePoint now) {
  const auto found = entries_.find(key);
  if (found != entries_.end()) return found->second;
  if (entries_.size() >= kMost) {
    std::erase_if(entries_, [now](const auto& entry) { return entry.second.due <= now; });
  }
  if (entries_.size() >= kMost) key.second = kOthers;
  return entries_[key];
}

}  // namespace fathom
