#include "router/gateway/prompt_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "metrics/catalogue.h"

namespace fathom {
namespace {

constexpr std::array<std::string_view, kUnreadReasons> kUnreadNames = {
    "no_tokenizer", "template", "timeout",   "error",    "overload",
    "too_long",     "media",    "continued", "truncated"};

constexpr RepeatRule kLineRule{.pause = PromptWatch::kRepeated};
constexpr size_t kLongestShown = 256;  // bytes of a model's name in a line

std::string_view Shown(std::string_view model) { return model.substr(0, kLongestShown); }

std::string FixOf(UnreadReason reason, EngineKind engine) {
  switch (reason) {
    case UnreadReason::kNoTokenizer:
      return engine == EngineKind::kTrtllm
                 ? "TensorRT-LLM has no /tokenize: give the router the model's files, --model-path "
                   "DIR or a folder for all models with --model-root DIR"
                 : "let the router tokenize: --model-root or --model-path DIR; or update the "
                   "engines "
                   "to a version with /tokenize";
    case UnreadReason::kTemplate:
      return "the router cannot use the model's chat template: update the engines to a version "
             "whose /tokenize takes chats, and report the template to the project";
    case UnreadReason::kTimeout:
      return "let the router tokenize: --model-path DIR; or raise --tokenize-timeout";
    case UnreadReason::kError:
      return "see what /tokenize answers on the workers; one that requires an API key needs "
             "api_key_env; or let the router tokenize: --model-path DIR";
    case UnreadReason::kOverload:
      return "let the router tokenize: --model-path DIR; or raise --tokenize-threads";
    case UnreadReason::kTooLong:
      return "prompts of more than 32 MiB of text are not tokenized: send token ids";
    case UnreadReason::kMedia:
      return "only an engine knows the tokens of media: put the text of these prompts before them";
    case UnreadReason::kContinued:
      return "only the worker that has a response can continue it: its worker is chosen where the "
             "router has seen the response";
    case UnreadReason::kTruncated:
      return "only an engine knows what is left of a truncated prompt: let the client shorten it";
  }
  std::unreachable();
}

}  // namespace

std::string_view Name(UnreadReason reason) { return kUnreadNames[static_cast<size_t>(reason)]; }

PromptWatch::PromptWatch(Registry& registry, Log& log) : log_(log) {
  for (size_t route = 0; route < kRoutes; ++route) {
    if (!HasPrompt(static_cast<Route>(route))) continue;
    for (size_t reason = 0; reason < kUnreadReasons; ++reason) {
      unread_[route][reason] =
          &registry.AddCounter(Metric("kv_router_prompts_unread_total"),
                               {{"route", std::string(Name(static_cast<Route>(route)))},
                                {"reason", std::string(kUnreadNames[reason])}});
    }
  }
}

bool PromptWatch::Entry::MayGo(TimePoint now) const {
  return unread.bits == 0 && by_text.bits == 0 && !lines.Paused(now, kLineRule);
}

std::atomic<uint8_t>& PromptWatch::ReadPlace(std::string_view model) {
  return read_[std::hash<std::string_view>()(model) % kReadPlaces];
}

void PromptWatch::CountRead(std::string_view model) {
  std::atomic<uint8_t>& place = ReadPlace(model);
  const uint8_t before = place.load(std::memory_order_relaxed);
  if (before < kLast) place.store(before + 1, std::memory_order_relaxed);
}

void PromptWatch::Note(const PromptReading& reading, TimePoint now) {
  const bool read = !reading.unread && !reading.by_text;
  const bool blind = reading.unread && !reading.by_text;
  if (read && remembered_.load(std::memory_order_relaxed) == 0) return CountRead(reading.model);
  if (blind) {
    unread_[static_cast<size_t>(reading.route)][static_cast<size_t>(*reading.unread)]->Add();
  }
  const std::lock_guard lock(mutex_);
  Entry* const entry = EntryOf(reading.model, !read, now);
  if (entry == nullptr) {
    if (read) CountRead(reading.model);
    return;
  }
  Update(*entry, reading, now);
  const bool unread = entry->unread.count() > kMostUnread;
  if (entry->degraded && !unread) Relax(reading.model, *entry);
  entry->degraded = unread;
  if (unread && blind) Complain(reading.model, *entry, now);
  if (entry->MayGo(now)) {
    entries_.erase(entries_.find(reading.model));
    remembered_.store(entries_.size(), std::memory_order_relaxed);
  }
}

void PromptWatch::Update(Entry& entry, const PromptReading& reading, TimePoint now) {
  const bool blind = reading.unread && !reading.by_text;
  entry.unread.Push(blind);
  entry.by_text.Push(reading.by_text);
  entry.seen = std::min(entry.seen + 1, kLast);
  entry.last = now;
  if (reading.unread) {
    entry.reason = reading.unread;
    entry.route = reading.route;
    entry.engine = reading.engine;
  } else if (entry.unread.bits == 0 && entry.by_text.bits == 0) {
    entry.reason.reset();
  }
  if (blind) entry.cost += reading.tokens;
  if (entry.unread.bits == 0) entry.cost = 0;
}

// Clients name models, but only those of the fleet get here: too many entries are a very large
// fleet, of which the first show what is wrong, or are of models that have left it.
PromptWatch::Entry* PromptWatch::EntryOf(std::string_view model, bool wanted, TimePoint now) {
  const auto found = entries_.find(model);
  if (found != entries_.end()) return &found->second;
  if (!wanted || (entries_.size() >= kMostModels && !MakeRoom(now))) return nullptr;
  Entry& entry = entries_[std::string(model)];
  entry.seen = ReadPlace(model).load(std::memory_order_relaxed);
  remembered_.store(entries_.size(), std::memory_order_relaxed);
  return &entry;
}

bool PromptWatch::MakeRoom(TimePoint now) {
  const auto oldest =
      std::ranges::min_element(entries_, {}, [](const auto& entry) { return entry.second.last; });
  if (now - oldest->second.last < kRepeated) return false;
  entries_.erase(oldest);
  return true;
}

// At once, and again while it lasts: an operator may come late.
void PromptWatch::Complain(std::string_view model, Entry& entry, TimePoint now) {
  if (!entry.lines.Next(now, kLineRule)) return;
  entry.logged = true;
  log_.Warn("Prompts are routed without their prefix, by load alone: caches are not used",
            {{"model", Shown(model)},
             {"cause", "prompts_unread"},
             {"reason", Name(*entry.reason)},
             {"route", Name(entry.route)},
             {"engine", Name(entry.engine)},
             {"unread", fmt::format("{} of the last {}", entry.unread.count(), entry.seen)},
             {"cost_tokens", entry.cost},
             {"fix", FixOf(*entry.reason, entry.engine)},
             {"docs", log_.docs().To("runbooks/prompts-unread.md")}});
}

void PromptWatch::Relax(std::string_view model, Entry& entry) {
  if (entry.logged) log_.Info("Prompts are read again", {{"model", Shown(model)}});
  entry.logged = false;
}

PromptWatch::Standing PromptWatch::Judge(const Entry& entry) {
  Standing standing;
  standing.reason = entry.reason;
  standing.route = entry.route;
  standing.engine = entry.engine;
  standing.cost = entry.cost;
  if (entry.degraded) {
    standing.cause = Cause::kUnread;
    standing.share = static_cast<double>(entry.unread.count()) / entry.seen;
    standing.fix = FixOf(*entry.reason, entry.engine);
  } else if (entry.by_text.count() > kMostUnread) {
    standing.cause = Cause::kByText;
    standing.share = static_cast<double>(entry.by_text.count()) / entry.seen;
    standing.fix =
        "prefixes are compared by their text: tokens would tell more; give the router the model's "
        "files: a Hugging Face cache, --model-root DIR or --model-path DIR";
  }
  return standing;
}

PromptWatch::Standing PromptWatch::StandingOf(std::string_view model) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(model);
  return found == entries_.end() ? Standing() : Judge(found->second);
}

bool PromptWatch::HasByText(std::string_view model) const {
  if (remembered_.load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(model);
  return found != entries_.end() && found->second.by_text.bits != 0;
}

std::vector<std::string> PromptWatch::Unread(TimePoint since) const {
  std::vector<std::string> out;
  const std::lock_guard lock(mutex_);
  for (const auto& [model, entry] : entries_) {
    if (entry.degraded && entry.last >= since) out.push_back(model);
  }
  return out;
}

std::vector<std::string> PromptWatch::UnreadIn(const FleetSnapshot& fleet, TimePoint since) const {
  std::vector<std::string> models = Unread(since);
  std::erase_if(models, [&](const std::string& model) { return !fleet.KnowsModel(model); });
  return models;
}

}  // namespace fathom
