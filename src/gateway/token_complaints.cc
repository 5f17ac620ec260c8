#include "gateway/token_complaints.h"

#include "gateway/tokenize_metrics.h"

namespace fathom {
namespace {

std::string_view ComplaintOf(TokenFailure reason) {
  switch (reason) {
    case TokenFailure::kTimeout:
      return "Text prompts are not tokenized in time and are routed by load. Raise "
             "--tokenize-timeout, or let the router tokenize: --model-path DIR";
    case TokenFailure::kRefused:
      return "Workers refuse to tokenize text prompts, which are routed by load. If the requests "
             "are in order the engine is too old to tokenize chats (SGLang before 0.5.12): update "
             "it, or let the router tokenize: --model-path DIR";
    case TokenFailure::kUnsupported:
      return "No worker of this model can tokenize: text prompts are routed by load, whatever the "
             "caches hold. Let the router tokenize, with the model's files: --model-path DIR; or "
             "send prompts as token ids";
    case TokenFailure::kError:
      return "Workers fail to tokenize text prompts, which are routed by load. Look at what "
             "/tokenize answers on the workers; one that wants an API key needs api_key_env in its "
             "workers: entry";
    case TokenFailure::kOverload:
      return "Too many text prompts, or too long ones, wait to be tokenized: more are routed by "
             "load. Let the router tokenize: --model-path DIR; or add workers";
  }
  std::unreachable();
}

// Empty: nothing is wrong with the router or its files.
std::string_view ComplaintOf(Inexact why) {
  switch (why) {
    case Inexact::kTemplateFailed:
      return "The model's chat template cannot render some chats here, and an engine is asked for "
             "their tokens. Compare `fathom tokenize` with the engine, and tell us about the "
             "template";
    case Inexact::kTooLong:
      return "Some prompts have more text, or longer words, than is tokenized here: they are "
             "routed on their beginning";
    case Inexact::kOverload:
    case Inexact::kTooLate:
      return "Long prompts are not tokenized in time and are routed on their beginning. Raise "
             "--tokenize-timeout or --tokenize-threads";
    default:
      return {};
  }
}

}  // namespace

void TokenComplaints::Miss(std::string_view model, TokenFailure reason, TimePoint now) {
  Say(ComplaintOf(reason), model, Name(reason), "", now);
}

void TokenComplaints::Miss(std::string_view model, Inexact why, std::string_view problem,
                           TimePoint now) {
  const std::string_view complaint = ComplaintOf(why);
  if (!complaint.empty()) Say(complaint, model, Name(why), problem, now);
}

void TokenComplaints::NotLiteral(std::string_view model, TimePoint now) {
  Say("Some chats go to their engine as text, where special tokens that users write take effect in "
      "spite of --literal-user-text: the engine takes no ids (vLLM), or the tokens are not all "
      "known (images, long prompts)",
      model, "not_literal", "", now);
}

void TokenComplaints::Say(std::string_view complaint, std::string_view model,
                          std::string_view reason, std::string_view problem, TimePoint now) {
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
  if (problem.empty()) {
    log_.Warn(complaint, {{"model", key.second}, {"reason", reason}, {"requests", requests}});
  } else {
    log_.Warn(
        complaint,
        {{"model", key.second}, {"reason", reason}, {"problem", problem}, {"requests", requests}});
  }
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
