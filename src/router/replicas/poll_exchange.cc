#include "router/replicas/poll_exchange.h"

#include <algorithm>

#include "base/random.h"

namespace fathom {
namespace {

constexpr size_t kMostPolledRanks = 1024;

std::vector<PolledRank> RanksOf(const PolledView& view) {
  std::vector<PolledRank> ranks;
  for (const auto& [rank, next] : view.next) {
    if (ranks.size() == kMostPolledRanks) break;
    ranks.push_back({rank, next});
  }
  return ranks;
}

PolledView ViewOf(const PolledAnswer& told) {
  PolledView view{.process = told.process, .next = {}};
  for (const PolledRank& rank : told.ranks) {
    if (view.next.size() == kMostPolledRanks) break;
    view.next[rank.rank] = rank.next;
  }
  return view;
}

// Of two views the later process counts; of the same one what either has heard.
void Merge(std::optional<PolledView>& into, const PolledView& view) {
  if (view.process == 0 || (into && view.process < into->process)) return;
  if (!into || view.process > into->process) {
    into = view;
    return;
  }
  for (const auto& [rank, next] : view.next) {
    if (into->next.size() >= kMostPolledRanks && !into->next.contains(rank)) continue;
    uint64_t& known = into->next[rank];
    known = std::max(known, next);
  }
}

}  // namespace

// --- the intake's side --------------------------------------------------------------------------

bool PollExchange::Mine(WorkerId worker) {
  const std::lock_guard lock(mutex_);
  Turn& turn = turns_[worker];
  turn.asked = true;
  return turn.mine;
}

std::optional<PolledView> PollExchange::Known(WorkerId worker) const {
  const std::lock_guard lock(mutex_);
  const auto turn = turns_.find(worker);
  return turn == turns_.end() ? std::nullopt : turn->second.known;
}

void PollExchange::Polled(WorkerId worker, PolledWord word) {
  const std::lock_guard lock(mutex_);
  // After Ends() there is no turn, and none may be taken again.
  if (!word.polls && !turns_.contains(worker)) return Queue(worker, std::move(word), {});
  Turn& turn = turns_[worker];
  const bool news = !word.body.empty() || !word.polls;
  if (word.polls) turn.answered = true;
  word.polls = word.polls || turn.polls();
  const PolledView before = std::exchange(turn.view, word.view);
  if (news) Queue(worker, std::move(word), before);
}

void PollExchange::Rests(WorkerId worker) {
  const std::lock_guard lock(mutex_);
  const auto turn = turns_.find(worker);
  if (turn == turns_.end() || !std::exchange(turn->second.answered, false)) return;
  const PolledView& view = turn->second.view;
  Queue(worker, {.view = view, .body = {}, .polls = false}, view);
}

void PollExchange::Ends(WorkerId worker) {
  Rests(worker);
  const std::lock_guard lock(mutex_);
  turns_.erase(worker);
}

bool PollExchange::telling() const {
  const std::lock_guard lock(mutex_);
  return !outgoing_.empty();
}

void PollExchange::Queue(WorkerId worker, PolledWord word, const PolledView& before) {
  if (alone()) return;
  if (outgoing_bytes_ + word.body.size() > kMostOutgoing) {
    ++counts_.dropped;
    return;  // the next announcement shows that events are missing
  }
  if (!word.body.empty()) {
    ++counts_.told;
    counts_.told_bytes += word.body.size();
  }
  outgoing_bytes_ += word.body.size();
  ++waiting_.try_emplace(worker, Waiting{.words = 0, .told = before}).first->second.words;
  outgoing_.push_back({worker, std::move(word), ++answers_, 0});
}

PollExchange::Counts PollExchange::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

// --- turns --------------------------------------------------------------------------------------

// Who has the highest one polls. The same in every replica.
uint64_t PollExchange::Score(WorkerId worker, std::string_view replica) {
  uint64_t name = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : replica) name = (name ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return Random(name ^ Random(worker.value()).Next()).Next();
}

void PollExchange::Tick(TimePoint now) {
  if (!began_) began_ = now;
  alone_.store(voice_.peers().empty(), std::memory_order_relaxed);
  TellParts(now);
  if (now - decided_ < kDecideEvery) return;
  decided_ = now;
  Forget(now);
  Decide(now);
  Announce(now);
}

void PollExchange::Decide(TimePoint now) {
  const std::lock_guard lock(mutex_);
  counts_.polling = 0;
  counts_.followed = 0;
  for (auto it = turns_.begin(); it != turns_.end();) {
    Turn& turn = it->second;
    if (turn.since == TimePoint{}) turn.since = now;
    if (std::exchange(turn.asked, false)) turn.last_asked = now;
    if (now - turn.last_asked > kForgetAfter) {
      it = turns_.erase(it);
      continue;
    }
    Decide(it->first, turn, now);
    ++(turn.mine ? counts_.polling : counts_.followed);
    ++it;
  }
}

void PollExchange::Decide(WorkerId worker, Turn& turn, TimePoint now) const {
  const uint64_t own = Score(worker, voice_.id());
  const auto pollers = pollers_.find(worker);
  size_t before_us = 0;
  bool one_before_us_polls = false;
  bool another_polls = false;
  turn.known.reset();
  for (const auto& [id, peer] : voice_.peers()) {
    const bool before = Score(worker, id) > own;
    if (before) ++before_us;
    if (pollers == pollers_.end()) continue;
    const auto heard = pollers->second.find(id);
    if (heard == pollers->second.end() || now - heard->second.heard >= kSilent) continue;
    another_polls = true;
    if (before) one_before_us_polls = true;
    Merge(turn.known, heard->second.view);
  }
  if (one_before_us_polls) {
    turn.mine = false;
    turn.quiet_since = now;
    return;
  }
  if (turn.mine) return;
  const bool others = !voice_.peers().empty() || now - *began_ < kListen;
  TimePoint from = turn.quiet_since;
  if (others) from = std::max(from, turn.since + kListen);
  if (!another_polls) from += before_us * kStep;
  if (now < from) return;
  turn.mine = true;
  turn.answered = true;  // so that the others hear of it before the first answer
}

void PollExchange::Announce(TimePoint now) {
  if (voice_.peers().empty()) return;
  std::vector<PolledAnswer> news;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [worker, turn] : turns_) {
      if (!turn.polls() || now - turn.announced < kAnnounce) continue;
      turn.announced = now;
      const auto waiting = waiting_.find(worker);
      const PolledView& view = waiting == waiting_.end() ? turn.view : waiting->second.told;
      news.push_back({.worker = worker.value(),
                      .answer = ++answers_,
                      .bytes = {},
                      .process = view.process,
                      .ranks = RanksOf(view)});
    }
  }
  for (PolledAnswer& told : news) voice_.Tell(std::move(told));
}

// --- what is told -------------------------------------------------------------------------------

void PollExchange::TellParts(TimePoint now) {
  if (now < tell_again_) return;
  for (size_t bytes = 0; bytes < kBytesPerTick;) {
    const auto part = FrontPart();
    if (!part) return;
    if (!TellPart(*part, now)) {
      tell_again_ = now + kTellAgain;
      return;
    }
    PartIsTold(now);
    bytes += std::max<size_t>(part->bytes.size(), 1);
  }
}

// False: one of the others does not take it yet.
bool PollExchange::TellPart(const PolledAnswer& part, TimePoint now) {
  if (part.parts == 1) {
    voice_.Tell(part);
    return true;
  }
  bool taken = true;
  for (const auto& [id, peer] : voice_.peers()) {
    if (have_part_.contains(id)) continue;
    if (voice_.TellOne(id, part)) {
      have_part_.insert(id);
      continue;
    }
    Slow& slow = slow_[id];
    if (!slow.since) slow.since = now;
    const Duration here = now - *slow.since;
    if (here < kPatience && slow.waited + here < kPatience + part.parts * kPartTime) {
      taken = false;
    } else {
      slow.missed = true;
    }
  }
  return taken;
}

std::optional<PolledAnswer> PollExchange::FrontPart() const {
  const std::lock_guard lock(mutex_);
  if (outgoing_.empty()) return std::nullopt;
  const Outgoing& out = outgoing_.front();
  return PolledAnswer{.worker = out.worker.value(),
                      .part = out.part,
                      .parts = static_cast<uint32_t>(out.parts()),
                      .answer = out.answer,
                      .bytes = out.word.body.substr(out.part * kPart, kPart),
                      .process = out.word.view.process,
                      .ranks = RanksOf(out.word.view),
                      .polls = out.word.polls};
}

void PollExchange::PartIsTold(TimePoint now) {
  have_part_.clear();
  for (auto& [id, slow] : slow_) {
    if (slow.since) slow.waited += now - *std::exchange(slow.since, std::nullopt);
  }
  const std::lock_guard lock(mutex_);
  Outgoing& out = outgoing_.front();
  if (++out.part < out.parts()) return;
  if (out.parts() > 1) {
    // Who took all of it is waited for again; who did not has used up its time.
    std::erase_if(slow_, [](const auto& peer) { return !peer.second.missed; });
    for (auto& [id, slow] : slow_) slow.missed = false;
  }
  outgoing_bytes_ -= out.word.body.size();
  const auto waiting = waiting_.find(out.worker);
  waiting->second.told = std::move(out.word.view);
  if (--waiting->second.words == 0) waiting_.erase(waiting);
  outgoing_.pop_front();
}

// --- what is heard ------------------------------------------------------------------------------

void PollExchange::Heard(const ReplicaMessage& message, TimePoint now) {
  const auto* told = std::get_if<PolledAnswer>(&message.content);
  if (told == nullptr) return;
  Note(message.origin, *told, now);
  auto body = Assemble(message.origin, *told, now);
  if (!body) return;
  if (!body->empty()) {
    const std::lock_guard lock(mutex_);
    ++counts_.heard;
  }
  deliver_(WorkerId(told->worker),
           {.view = ViewOf(*told), .body = *std::move(body), .polls = told->polls});
}

void PollExchange::Note(const std::string& origin, const PolledAnswer& told, TimePoint now) {
  const WorkerId worker(told.worker);
  if (!told.polls) {
    const auto pollers = pollers_.find(worker);
    if (pollers != pollers_.end()) pollers->second.erase(origin);
    return;
  }
  if (pollers_.size() >= kMostWorkers && !pollers_.contains(worker)) return;
  Poller& poller = pollers_[worker][origin];
  poller.heard = now;
  std::optional<PolledView> view = std::move(poller.view);
  Merge(view, ViewOf(told));
  poller.view = *std::move(view);
}

// nullopt: parts are missing.
std::optional<std::string> PollExchange::Assemble(const std::string& origin,
                                                  const PolledAnswer& told, TimePoint now) {
  if (told.parts <= 1) return told.bytes;
  constexpr size_t kMostParts = kLongestAnswer / kPart + 2;
  if (told.parts > kMostParts || told.part >= told.parts) return std::nullopt;
  const AnswerName name{origin, told.answer};
  // What is told to one may reach the others, too.
  if (const auto last = finished_.find(origin);
      last != finished_.end() && last->second == told.answer)
    return std::nullopt;
  if (!unfinished_.contains(name)) {
    while (unfinished_.size() >= kMostUnfinished) DropOldest();
    unfinished_[name] = {.since = now,
                         .bytes = 0,
                         .missing = told.parts,
                         .parts = std::vector<std::optional<std::string>>(told.parts)};
  }
  Unfinished& answer = unfinished_.at(name);
  if (answer.parts.size() != told.parts || answer.parts[told.part]) return std::nullopt;
  answer.since = now;
  answer.parts[told.part] = told.bytes;
  answer.bytes += told.bytes.size();
  unfinished_bytes_ += told.bytes.size();
  if (--answer.missing > 0) {
    while (unfinished_bytes_ > kMostIncoming) DropOldest();
    return std::nullopt;
  }
  std::string body;
  body.reserve(answer.bytes);
  for (const auto& part : answer.parts) body += *part;
  unfinished_bytes_ -= answer.bytes;
  unfinished_.erase(name);
  finished_[origin] = told.answer;
  return body;
}

void PollExchange::DropOldest() {
  const auto oldest = std::ranges::min_element(
      unfinished_, {}, [](const auto& answer) { return answer.second.since; });
  unfinished_bytes_ -= oldest->second.bytes;
  unfinished_.erase(oldest);
  const std::lock_guard lock(mutex_);
  ++counts_.incomplete;
}

void PollExchange::Forget(TimePoint now) {
  const auto late = [&](const auto& answer) { return now - answer.second.since >= kPartsWithin; };
  while (std::ranges::any_of(unfinished_, late)) DropOldest();
  ForgetPollers([&](const auto& poller) { return now - poller.second.heard >= kSilent; });
}

void PollExchange::ForgetPollers(const std::function<bool(const Pollers::value_type&)>& gone) {
  for (auto it = pollers_.begin(); it != pollers_.end();) {
    std::erase_if(it->second, gone);
    it = it->second.empty() ? pollers_.erase(it) : std::next(it);
  }
}

void PollExchange::Joined(const std::string& origin, TimePoint /*now*/) {
  finished_.erase(origin);  // a new process counts from the beginning
  alone_.store(false, std::memory_order_relaxed);
}

void PollExchange::Left(const std::string& origin, TimePoint /*now*/) {
  ForgetPollers([&](const auto& poller) { return poller.first == origin; });
  finished_.erase(origin);
  have_part_.erase(origin);
  slow_.erase(origin);
  std::erase_if(unfinished_, [&](const auto& answer) {
    if (answer.first.origin != origin) return false;
    unfinished_bytes_ -= answer.second.bytes;
    return true;
  });
}

}  // namespace fathom
