#include "router/replicas/session_exchange.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>
#include <variant>

#include "base/random.h"
#include "router/replicas/told_time.h"

namespace fathom {
namespace {

// The same in every process: FNV-1a of both names, well mixed.
uint64_t PlaceInOrder(std::string_view newcomer, std::string_view other) {
  uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  };
  add(newcomer);
  add("/");
  add(other);
  return Random(hash).Next();
}

TimePoint LastUsed(TimePoint now, uint32_t idle_ms) {
  return now - std::chrono::milliseconds(idle_ms);
}

// Calls `tell` with lists of at most kPage.
template <class Told, class Content, class Convert>
void InPages(const std::vector<Told>& told, std::vector<Content>& page, const Convert& convert,
             const std::function<void()>& tell) {
  for (size_t i = 0; i < told.size(); ++i) {
    page.push_back(convert(told[i]));
    if (page.size() == SessionExchange::kPage || i + 1 == told.size()) tell();
  }
}

}  // namespace

SessionExchange::SessionExchange(SessionAffinity& sessions, ResponsePins& pins, ReplicaVoice& voice)
    : sessions_(sessions), pins_(pins), voice_(voice) {
  sessions_.Listen();
  pins_.Listen();
}

void SessionExchange::TellSessions(const std::vector<SessionAffinity::Told>& told, TimePoint now,
                                   const Tell& tell) {
  SessionBindings message;
  InPages(
      told, message.bindings,
      [&](const SessionAffinity::Told& one) {
        return SessionBinding{.session = one.session,
                              .worker = one.worker.value(),
                              .clock = one.clock,
                              .idle_ms = ToldMs(now - one.last_used)};
      },
      [&] { tell(std::exchange(message, {})); });
}

void SessionExchange::TellPins(const std::vector<ResponsePins::Told>& told, TimePoint now,
                               const Tell& tell) {
  ResponsePinsTold message;
  InPages(
      told, message.pins,
      [&](const ResponsePins::Told& one) {
        return ResponsePinTold{.response = one.response,
                               .rank = {one.pin.worker.value(), one.pin.dp_rank},
                               .tokens = one.pin.tokens,
                               .idle_ms = ToldMs(now - one.last_used)};
      },
      [&] { tell(std::exchange(message, {})); });
}

void SessionExchange::TellNews(TimePoint now) {
  const bool heard = !voice_.peers().empty();
  if (!heard && now - started_ < kTogether) return;  // the others have not been found yet
  some_sessions_.clear();
  some_pins_.clear();
  sessions_.TakeNews(some_sessions_, kMostNewsPerTick);
  pins_.TakeNews(some_pins_, kMostNewsPerTick);
  if (!heard) return;  // whoever comes is told everything
  const Tell to_all = [&](ReplicaMessage::Content content) { voice_.Tell(std::move(content)); };
  TellSessions(some_sessions_, now, to_all);
  TellPins(some_pins_, now, to_all);
}

// Those that joined together with the newcomer, as seen from here, know no more than it does: after
// a partition each side has somebody who tells the other.
bool SessionExchange::IsGuideOf(const std::string& newcomer) const {
  const TimePoint came = joined_.find(newcomer)->second;
  if (came - started_ < kTogether) return false;
  const uint64_t own = PlaceInOrder(newcomer, voice_.id());
  return std::ranges::none_of(joined_, [&](const auto& other) {
    return other.second + kTogether <= came && PlaceInOrder(newcomer, other.first) > own;
  });
}

void SessionExchange::Guide(TimePoint now) {
  if (!tour_) {
    const auto next = std::ranges::find_if(
        newcomers_, [&](const auto& newcomer) { return now - newcomer.second >= kSettle; });
    if (next == newcomers_.end()) return;
    const std::string newcomer = next->first;
    newcomers_.erase(next);
    if (!IsGuideOf(newcomer)) return;
    tour_.emplace();
    tour_->newcomer = newcomer;
  }
  // A page that did not leave, because too much waits for the newcomer, is told again.
  bool taken = true;
  const Tell to_one = [&](ReplicaMessage::Content content) {
    taken = voice_.TellOne(tour_->newcomer, std::move(content)) && taken;
  };
  if (tour_->session_page.empty() && tour_->pin_page.empty()) {
    sessions_.Continue(tour_->sessions, tour_->session_page, kPage);
    pins_.Continue(tour_->pins, tour_->pin_page, kPage);
  }
  TellSessions(tour_->session_page, now, to_one);
  TellPins(tour_->pin_page, now, to_one);
  if (!taken) return;
  tour_->session_page.clear();
  tour_->pin_page.clear();
  if (tour_->done()) tour_.reset();
}

void SessionExchange::Tick(TimePoint now) {
  Start(now);
  TellNews(now);
  Guide(now);
}

void SessionExchange::Heard(const ReplicaMessage& message, TimePoint now) {
  if (const auto* const told = std::get_if<SessionBindings>(&message.content)) {
    for (const SessionBinding& one : told->bindings) {
      sessions_.Learn({.session = one.session,
                       .worker = WorkerId(one.worker),
                       .clock = one.clock,
                       .last_used = LastUsed(now, one.idle_ms)},
                      now);
    }
  }
  if (const auto* const told = std::get_if<ResponsePinsTold>(&message.content)) {
    for (const ResponsePinTold& one : told->pins) {
      pins_.Learn({.response = one.response,
                   .pin = {WorkerId(one.rank.worker), one.rank.dp_rank, one.tokens},
                   .last_used = LastUsed(now, one.idle_ms)},
                  now);
    }
  }
}

void SessionExchange::Joined(const std::string& origin, TimePoint now) {
  Start(now);
  joined_[origin] = now;
  newcomers_[origin] = now;
}

void SessionExchange::Left(const std::string& origin, TimePoint /*now*/) {
  joined_.erase(origin);
  newcomers_.erase(origin);
  if (tour_ && tour_->newcomer == origin) tour_.reset();
}

}  // namespace fathom
