#include "router/replicas/prompt_exchange.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <variant>

#include "router/replicas/told_time.h"

namespace fathom {
namespace {

constexpr Duration kLongestBelief = MarkTable::Node::kLongestPrefill;

// At most, as msgpack.
size_t BytesOf(const SentPrompt& prompt) { return 40 + 15 * prompt.marks.size(); }

}  // namespace

PromptExchange::PromptExchange(SentPrompts& prompts, ReplicaVoice& voice)
    : prompts_(prompts), voice_(voice) {
  prompts_.Listen();
}

PromptExchange::~PromptExchange() {
  while (!origins_.empty()) Forget(std::string(origins_.begin()->first));
}

// --- telling -------------------------------------------------------------------------------------

void PromptExchange::Add(SentPrompt prompt) {
  const size_t bytes = BytesOf(prompt);
  if (batch_bytes_ + bytes > kMostBytesTold || batch_.prompts.size() >= kMostNamed) Flush();
  batch_bytes_ += bytes;
  batch_.prompts.push_back(std::move(prompt));
}

void PromptExchange::Flush() {
  if (!batch_.prompts.empty()) voice_.Tell(std::exchange(batch_, {}));
  batch_bytes_ = 0;
}

void PromptExchange::Keep(const SentPrompts::News& news) {
  if (news.marks.empty()) {
    if (const auto at = own_.find(news.id); at != own_.end()) at->second.until = news.until;
    return;
  }
  own_marks_ += news.marks.size();
  own_.insert_or_assign(news.id, Own{news.rank, news.until, news.marks});
}

void PromptExchange::ForgetOwn(TimePoint now) {
  const auto forget = [&](auto at) {
    own_marks_ -= at->second.marks.size();
    return own_.erase(at);
  };
  for (auto at = own_.begin(); at != own_.end();) {
    at = at->second.until <= now ? forget(at) : std::next(at);
  }
}

void PromptExchange::TakeNews(TimePoint now) {
  news_.clear();
  prompts_.TakeNews(news_);
  const bool heard = !voice_.peers().empty();
  for (SentPrompts::News& news : news_) {
    if (news.marks.size() > kMostMarks) news.marks.resize(kMostMarks);
    Keep(news);
    if (!heard) continue;
    owes_whole_ = true;
    Add({.id = news.id,
         .rank = news.rank,
         .believed_ms = ToldMs(news.until - now),
         .marks = std::move(news.marks)});
  }
  while (own_marks_ > kMostOwn) {
    own_marks_ -= own_.begin()->second.marks.size();
    own_.erase(own_.begin());
  }
}

// Names what is believed, without marks.
void PromptExchange::TellWhole(TimePoint now) {
  ForgetOwn(now);
  if (!owes_whole_) return;
  owes_whole_ = !own_.empty();
  SentPromptsTold whole{.whole = true};
  for (auto at = own_.rbegin(); at != own_.rend() && whole.prompts.size() < kMostNamed; ++at) {
    whole.prompts.push_back(
        {.id = at->first, .rank = at->second.rank, .believed_ms = ToldMs(at->second.until - now)});
  }
  voice_.Tell(std::move(whole));
}

void PromptExchange::TellNewcomer(TimePoint now) {
  ForgetOwn(now);
  size_t bytes = 0;
  for (auto at = own_.rbegin(); at != own_.rend(); ++at) {
    SentPrompt prompt{.id = at->first,
                      .rank = at->second.rank,
                      .believed_ms = ToldMs(at->second.until - now),
                      .marks = at->second.marks};
    bytes += BytesOf(prompt);
    if (bytes > kMostForNewcomer) break;
    Add(std::move(prompt));
  }
  Flush();
}

void PromptExchange::Tick(TimePoint now) {
  while (!ends_.empty() && ends_.begin()->until <= now) {
    const End end = *ends_.begin();
    Drop(*end.origin, end.origin->prompts.find(end.id));
  }
  TakeNews(now);
  Flush();
  if (now >= whole_due_) {
    whole_due_ = now + kWhole;
    TellWhole(now);
  }
  if (now >= newcomer_due_) {
    newcomer_due_ = kNever;
    TellNewcomer(now);
  }
}

// --- hearing -------------------------------------------------------------------------------------

void PromptExchange::Drop(Origin& origin, std::map<uint64_t, Foreign>::iterator at) {
  const Foreign& foreign = at->second;
  prompts_.Disbelieve(foreign.rank, foreign.marks);
  origin.marks -= foreign.marks.size();
  ends_.erase({foreign.until, &origin, at->first});
  origin.prompts.erase(at);
}

bool PromptExchange::HasRoom(const Origin& origin, size_t marks) const {
  return origin.marks + marks <= SentPrompts::kMostForeign / origins_.size();
}

void PromptExchange::Hear(Origin& origin, uint64_t number, const SentPrompt& told, TimePoint now) {
  const TimePoint until =
      now + std::min<Duration>(std::chrono::milliseconds(told.believed_ms), kLongestBelief);
  auto at = origin.prompts.find(told.id);
  if (at != origin.prompts.end()) {
    if (number < at->second.number) return;
    if (until <= now) return Drop(origin, at);
    ends_.erase({at->second.until, &origin, told.id});
    ends_.insert({until, &origin, told.id});
    at->second.until = until;
    at->second.number = number;
    return;
  }
  const bool good = until > now && !told.marks.empty() && told.marks.size() <= kMostMarks;
  if (!good || !HasRoom(origin, told.marks.size())) return;
  if (!prompts_.Believe(told.rank, told.marks, now)) return;
  origin.prompts.emplace(told.id, Foreign{number, told.rank, until, told.marks});
  origin.marks += told.marks.size();
  ends_.insert({until, &origin, told.id});
}

void PromptExchange::EndUnnamed(Origin& origin, uint64_t number, const SentPromptsTold& told) {
  std::unordered_set<uint64_t> named;
  for (const SentPrompt& prompt : told.prompts) named.insert(prompt.id);
  // A full list has the newest, and says nothing of older ones.
  uint64_t first = 0;
  if (told.prompts.size() >= kMostNamed) {
    first = std::ranges::min_element(told.prompts, {}, &SentPrompt::id)->id;
  }
  for (auto at = origin.prompts.lower_bound(first); at != origin.prompts.end();) {
    const auto next = std::next(at);
    if (at->second.number < number && !named.contains(at->first)) Drop(origin, at);
    at = next;
  }
}

void PromptExchange::Heard(const ReplicaMessage& message, TimePoint now) {
  const auto* const told = std::get_if<SentPromptsTold>(&message.content);
  if (told == nullptr) return;
  Origin& origin = origins_[message.origin];
  for (const SentPrompt& prompt : told->prompts) Hear(origin, message.number, prompt, now);
  if (told->whole) EndUnnamed(origin, message.number, *told);
}

void PromptExchange::Forget(const std::string& origin) {
  const auto found = origins_.find(origin);
  if (found == origins_.end()) return;
  while (!found->second.prompts.empty()) Drop(found->second, found->second.prompts.begin());
  origins_.erase(found);
}

void PromptExchange::Joined(const std::string& origin, TimePoint now) {
  Forget(origin);  // its ids begin anew
  newcomer_due_ = now + kSettle;
}

void PromptExchange::Left(const std::string& origin, TimePoint /*now*/) { Forget(origin); }

}  // namespace fathom
