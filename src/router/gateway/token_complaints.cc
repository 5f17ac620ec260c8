#include "router/gateway/token_complaints.h"

#include "router/gateway/tokenize_metrics.h"

namespace fathom {
namespace {

constexpr RepeatRule kRule{.pause = TokenComplaints::kQuiet};

std::string_view ComplaintOf(TokenFailure reason) {
  switch (reason) {
    case TokenFailure::kTimeout:
      return "Text prompts are not tokenized in time and are routed without their tokens. Raise "
             "--tokenize-timeout, or let the router tokenize: --model-path DIR";
    case TokenFailure::kRefused:
      return "Workers refuse to tokenize text prompts, which are routed without their tokens. If "
             "the requests "
             "are valid, the engine is too old to tokenize chats (SGLang before 0.5.12): update "
             "it, or let the router tokenize: --model-path DIR";
    case TokenFailure::kUnsupported:
      return "No worker of this model can tokenize: text prompts are routed without their tokens, "
             "regardless of KV events. Let the router tokenize, with the model's files: "
             "--model-path "
             "DIR; or send prompts as token ids";
    case TokenFailure::kError:
      return "Workers fail to tokenize text prompts, which are routed without their tokens. Check "
             "what "
             "/tokenize answers on the workers; one that requires an API key needs api_key_env "
             "in its workers: entry";
    case TokenFailure::kOverload:
      return "Too many text prompts, or too long ones, wait to be tokenized: further ones are "
             "routed without their tokens. Let the router tokenize: --model-path DIR; or add "
             "workers";
  }
  std::unreachable();
}

// Empty: the cause is neither the router nor its files.
std::string_view ComplaintOf(Inexact why) {
  switch (why) {
    case Inexact::kTemplateFailed:
      return "Fathom cannot render some chats with the model's chat template and asks an engine "
             "for their tokens. Compare `fathom tokenize` with the engine, and report the "
             "template to the project";
    case Inexact::kTooLong:
      return "Some prompts exceed the router's limits on text or word length: they are routed by "
             "their beginning";
    case Inexact::kOverload:
    case Inexact::kTooLate:
      return "Long prompts are not tokenized in time and are routed by their beginning. Raise "
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
  Say("Some chats are sent to their engine as text, so special tokens that users write take "
      "effect despite --literal-user-text: the engine accepts no token ids for chats (vLLM), or "
      "some tokens are unknown (images, long prompts)",
      model, "not_literal", "", now);
}

void TokenComplaints::Say(std::string_view complaint, std::string_view model,
                          std::string_view reason, std::string_view problem, TimePoint now) {
  Key key(reason, model.size() > kLongestName ? kOthers : model);
  std::optional<uint64_t> suppressed;
  {
    const std::lock_guard lock(mutex_);
    suppressed = LimitOf(key, now).Next(now, kRule);
  }
  if (!suppressed) return;
  const uint64_t requests = *suppressed + 1;
  if (problem.empty()) {
    log_.Warn(complaint, {{"model", key.second}, {"reason", reason}, {"requests", requests}});
  } else {
    log_.Warn(
        complaint,
        {{"model", key.second}, {"reason", reason}, {"problem", problem}, {"requests", requests}});
  }
}

// Changes `key` to a shared entry if the limit is reached.
RepeatLimit& TokenComplaints::LimitOf(Key& key, TimePoint now) {
  const auto found = limits_.find(key);
  if (found != limits_.end()) return found->second;
  if (limits_.size() >= kMost) {
    std::erase_if(limits_, [now](const auto& entry) { return !entry.second.Paused(now, kRule); });
  }
  if (limits_.size() >= kMost) key.second = kOthers;
  return limits_[key];
}

}  // namespace fathom
