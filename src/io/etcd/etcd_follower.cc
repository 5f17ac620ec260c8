#include "io/etcd/etcd_follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/secret.h"
#include "io/etcd/etcd_stream.h"

namespace fathom {
namespace {

constexpr uint32_t kChecksInARow = 2;  // that may fail before the watch is given up

uint64_t HashOfValue(std::string_view value) { return std::hash<std::string_view>()(value); }

EtcdError StaleWatch(std::string_view what) {
  return {{Blame::kPeer, std::string(what)}, EtcdCause::kUnreachable, 2000};
}

EtcdError CanceledWatch(std::string_view reason) {
  return {{Blame::kPeer, fmt::format("etcd canceled the watch: {}", reason)},
          EtcdCause::kRefused,
          2001};
}

}  // namespace

EtcdFollower::EtcdFollower(Loop& loop, EtcdClient& client, std::string prefix,
                           EtcdListener& listener, EtcdFollowerOptions options)
    : loop_(loop),
      client_(client),
      prefix_(std::move(prefix)),
      end_(EtcdRangeEnd(prefix_)),
      listener_(listener),
      options_(options),
      random_(RandomSecret()) {}

void EtcdFollower::Start() {
  if (running_) return;
  running_ = true;
  Spawn(Run());
}

void EtcdFollower::Stop() {
  stopped_ = true;
  if (!running_) return;
  client_.Cancel();
  if (stream_ != nullptr) stream_->Cancel();
  if (pause_ != nullptr) pause_->Wake();
}

Task<void> EtcdFollower::Run() {
  while (!stopped_) {
    auto round = Round();
    auto ended = co_await round;
    if (stopped_) break;
    if (ended) continue;
    NoteTrouble(ended.error());
    auto pausing = Pause();
    co_await pausing;
  }
  running_ = false;
}

Task<void> EtcdFollower::Pause() {
  const uint32_t doublings = std::min<uint32_t>(failures_, 16);
  if (failures_ < 16) ++failures_;
  const Duration longest =
      std::min(options_.longest_pause, options_.first_pause * (1 << doublings));
  const auto part = static_cast<double>(longest.count()) * (0.5 + random_.Unit() / 2);
  const Duration pause =
      std::max(std::min(options_.first_pause, longest), Duration(static_cast<int64_t>(part)));
  WakeableWait wait(loop_, std::min(loop_.now() + pause, doubt_until_));
  pause_ = &wait;
  co_await wait;
  pause_ = nullptr;
  if (!stopped_) RemoveDoubtful();
}

Task<EtcdResult<void>> EtcdFollower::Round() {
  if (must_list_) {
    auto listing = List();
    auto listed = co_await listing;
    if (stopped_ || !listed) co_return listed;
    must_list_ = false;
    listed_at_ = loop_.now();
    if (!uncounted_) said_keys_ = said_names_ = false;
    listener_.OnListed(!uncounted_);
  }
  const TimePoint began = loop_.now();
  auto watching = Watch();
  auto watched = co_await watching;
  if (stopped_) co_return watched;
  // A watch that has lasted for a while is renewed at once; one that ends again and again is not.
  const bool lasted = confirmed_ && loop_.now() - began >= 2 * options_.first_pause;
  if (lasted) failures_ = 0;
  if (!watched) client_.MoveOn();
  if (lasted && (!watched || loop_.now() - listed_at_ >= options_.first_pause)) {
    co_return EtcdResult<void>();
  }
  if (!watched) co_return watched;
  auto pausing = Pause();
  co_await pausing;
  co_return EtcdResult<void>();
}

Task<EtcdResult<EtcdRange>> EtcdFollower::ReadPage(std::string from, uint64_t revision,
                                                   uint64_t& page) {
  for (;;) {
    EtcdQuery query{.key = from, .range_end = end_, .limit = page, .revision = revision};
    auto reading = client_.Range(std::move(query));
    auto range = co_await reading;
    if (range) {
      page = std::min(options_.page, 2 * page);
      co_return range;
    }
    const bool too_long = range.error().cause == EtcdCause::kBadAnswer;  // perhaps
    if (!too_long || stopped_) co_return range;
    if (page == 1) break;
    page = std::max<uint64_t>(1, page / 8);
  }
  EtcdQuery query{.key = from, .range_end = end_, .limit = 1, .revision = revision};
  query.keys_only = true;
  auto reading = client_.Range(std::move(query));
  auto range = co_await reading;
  if (range) {
    for (EtcdPair& pair : range->pairs) pair.unread = true;
  }
  co_return range;
}

Task<EtcdResult<void>> EtcdFollower::List() {
  ++listing_;
  uint64_t page = options_.page;
  uint64_t revision = 0;
  std::string from = prefix_;
  size_t read = 0;
  uncounted_ = false;
  for (bool more = true; more;) {
    auto reading = ReadPage(from, revision, page);
    auto range = co_await reading;
    if (stopped_) co_return EtcdResult<void>();
    if (!range) co_return std::unexpected(std::move(range).error());
    if (revision == 0) {
      revision = range->header.revision;
      if (seen_ > 0 && !SameHistory(range->header)) doubt_until_ = loop_.now() + options_.doubt;
      cluster_ = range->header.cluster;
    }
    for (const EtcdPair& pair : range->pairs) Store(pair);
    read += range->pairs.size();
    more = range->more && !range->pairs.empty();
    if (more) from = range->pairs.back().key + '\0';
    if (more && read >= options_.max_keys) {
      uncounted_ = true;
      if (!std::exchange(said_keys_, true)) {
        listener_.OnPassedOver("", fmt::format("more than {} keys", options_.max_keys));
      }
      break;
    }
  }
  RemoveMissing(from, !uncounted_);
  seen_ = revision;
  due_revision_ = odd_count_at_ = 0;
  co_return EtcdResult<void>();
}

bool EtcdFollower::SameHistory(const EtcdHeader& header) const {
  return header.cluster == cluster_ && header.revision >= seen_;
}

Task<EtcdResult<void>> EtcdFollower::Watch() {
  EtcdStream stream(client_);
  stream_ = &stream;
  confirmed_ = false;
  auto opening = stream.Open(prefix_, end_, seen_ + 1);
  auto ended = co_await opening;
  if (ended && !stopped_) {
    auto following = FollowStream(stream);
    auto followed = co_await following;
    ended = std::move(followed);
  }
  stream_ = nullptr;
  co_return ended;
}

Task<EtcdResult<void>> EtcdFollower::FollowStream(EtcdStream& stream) {
  const size_t member = client_.member();
  missed_checks_ = 0;
  // Until the watch is confirmed, silence is an error.
  next_check_ = loop_.now() + client_.patience();
  for (;;) {
    auto reading = stream.Next(std::min(next_check_, doubt_until_));
    auto message = co_await reading;
    if (stopped_) co_return EtcdResult<void>();
    if (!message) {
      // What could not be read may have been a change.
      if (message.error().cause == EtcdCause::kBadAnswer) must_list_ = true;
      co_return std::unexpected(std::move(message).error());
    }
    RemoveDoubtful();
    if (*message) {
      if (!Accept(**message)) {
        must_list_ = true;
        if (!(*message)->reason.empty() && (*message)->compact_revision == 0) {
          co_return std::unexpected(CanceledWatch((*message)->reason));
        }
        co_return EtcdResult<void>();
      }
      if ((*message)->created && !confirmed_) {
        confirmed_ = true;
        next_check_ = loop_.now() + options_.check;
        NoteOrder();
      }
    }
    if (loop_.now() < next_check_) continue;
    if (!confirmed_)
      co_return std::unexpected(StaleWatch("etcd did not confirm the watch in time"));
    auto checking = Check();
    auto checked = co_await checking;
    if (stopped_) co_return EtcdResult<void>();
    if (!checked) co_return std::unexpected(std::move(checked).error());
    if (must_list_) co_return EtcdResult<void>();
    // Another member answered: the watch's own did not.
    if (client_.member() != member) {
      co_return std::unexpected(StaleWatch("the member of etcd that is watched does not answer"));
    }
    next_check_ = loop_.now() + options_.check;
  }
}

Task<EtcdResult<void>> EtcdFollower::Check() {
  EtcdQuery query{.key = prefix_, .range_end = end_, .limit = 1};
  query.keys_only = true;
  query.newest_first = true;
  auto reading = client_.Range(std::move(query));
  auto range = co_await reading;
  if (stopped_) co_return EtcdResult<void>();
  if (!range) {
    if (++missed_checks_ < kChecksInARow) co_return EtcdResult<void>();
    co_return std::unexpected(std::move(range).error());
  }
  missed_checks_ = 0;
  failures_ = 0;
  if (!SameHistory(range->header)) {
    must_list_ = true;
    co_return EtcdResult<void>();
  }
  // What the last check found must have arrived by now.
  if (seen_ < due_revision_) {
    must_list_ = true;
    co_return std::unexpected(StaleWatch("the watch is behind: a change has not arrived"));
  }
  due_revision_ = range->pairs.empty() ? 0 : range->pairs.front().changed;
  // A key that is gone changes only the number of keys.
  const bool odd =
      !uncounted_ && doubtful_.empty() && range->count != known_.size() && due_revision_ <= seen_;
  if (odd && odd_count_at_ == seen_) {
    must_list_ = true;
    co_return std::unexpected(StaleWatch("the watch is behind: a deletion has not arrived"));
  }
  odd_count_at_ = odd ? seen_ : 0;
  co_return EtcdResult<void>();
}

bool EtcdFollower::Accept(const EtcdWatchMessage& message) {
  if (message.canceled) return false;
  // A member that lags behind has an older revision, too; the linearizable read decides.
  if (message.header.cluster != cluster_) return false;
  if (message.created && message.header.revision < seen_) return false;
  for (const EtcdEvent& event : message.events) {
    if (!event.pair.key.starts_with(prefix_)) continue;
    if (event.gone) {
      Remove(event.pair.key);
    } else {
      Store(event.pair);
    }
  }
  if (message.events.empty()) {
    // A progress notification: nothing below it is still to come.
    if (!message.created) seen_ = std::max(seen_, message.header.revision);
    return true;
  }
  // The header has the store's revision at the time of sending, not that of these events. Of a
  // fragment more events with the same revision follow.
  const uint64_t last = message.events.back().pair.changed;
  const uint64_t all = message.fragment && last > 0 ? last - 1 : last;
  seen_ = std::max(seen_, all);
  return true;
}

void EtcdFollower::Store(const EtcdPair& pair) {
  if (!pair.key.starts_with(prefix_)) return;
  if (pair.key.size() > options_.max_key) {
    uncounted_ = true;
    if (!std::exchange(said_names_, true)) {
      listener_.OnPassedOver("", fmt::format("a key is longer than {} bytes", options_.max_key));
    }
    return;
  }
  auto at = known_.find(pair.key);
  if (at == known_.end()) {
    if (known_.size() >= options_.max_keys) {
      uncounted_ = true;
      if (!std::exchange(said_keys_, true)) {
        listener_.OnPassedOver("", fmt::format("more than {} keys", options_.max_keys));
      }
      return;
    }
    at = known_.emplace(pair.key, Known{}).first;
  }
  Known& known = at->second;
  known.listing = listing_;
  doubtful_.erase(pair.key);
  if (pair.unread) {
    PassOver(pair.key, known, "the value is too long to be read");
    return;
  }
  const size_t others = values_ - (known.reported ? known.size : 0);
  if (pair.value.size() > options_.max_value) {
    PassOver(
        pair.key, known,
        fmt::format("the value has {} bytes, more than {}", pair.value.size(), options_.max_value));
    return;
  }
  if (others + pair.value.size() > options_.max_values) {
    PassOver(pair.key, known,
             fmt::format("all values together have more than {} bytes", options_.max_values));
    return;
  }
  const bool was_passed_over = std::exchange(known.passed_over, false);
  const uint64_t hash = HashOfValue(pair.value);
  const bool same = known.reported && known.hash == hash && known.size == pair.value.size();
  if (same && !was_passed_over) return;
  values_ = others + pair.value.size();
  known.hash = hash;
  known.size = pair.value.size();
  known.reported = true;
  listener_.OnValue(pair.key, pair.value);
}

void EtcdFollower::PassOver(const std::string& key, Known& known, std::string_view why) {
  if (!std::exchange(known.passed_over, true)) listener_.OnPassedOver(key, why);
}

void EtcdFollower::Remove(const std::string& key) {
  const auto at = known_.find(key);
  if (at != known_.end()) Forget(at);
}

void EtcdFollower::Forget(std::map<std::string, Known, std::less<>>::iterator at) {
  const std::string key = at->first;
  if (at->second.reported) values_ -= at->second.size;
  known_.erase(at);
  doubtful_.erase(key);
  listener_.OnGone(key);
}

void EtcdFollower::RemoveMissing(const std::string& read_up_to, bool complete) {
  const bool doubt = doubt_until_ != kNever;
  std::vector<std::string> missing;
  for (const auto& [key, known] : known_) {
    const bool read = complete || key < read_up_to;
    if (read && known.listing != listing_) missing.push_back(key);
  }
  for (const std::string& key : missing) {
    if (doubt && known_.find(key)->second.reported) {
      doubtful_.insert(key);
    } else {
      Remove(key);
    }
  }
  if (doubtful_.empty()) doubt_until_ = kNever;
}

void EtcdFollower::RemoveDoubtful() {
  if (loop_.now() < doubt_until_) return;
  doubt_until_ = kNever;
  const std::vector<std::string> keys(doubtful_.begin(), doubtful_.end());
  for (const std::string& key : keys) Remove(key);
}

void EtcdFollower::NoteTrouble(const EtcdError& error) {
  const bool same = troubled_ && error.cause == trouble_cause_ && error.detail == trouble_detail_;
  troubled_ = true;
  trouble_cause_ = error.cause;
  trouble_detail_ = error.detail;
  if (!same) listener_.OnTrouble(error.what);
}

void EtcdFollower::NoteOrder() {
  if (std::exchange(troubled_, false)) listener_.OnRecovered();
}

}  // namespace fathom
