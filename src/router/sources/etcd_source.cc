#include "router/sources/etcd_source.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/text.h"
#include "codec/url.h"
#include "io/etcd/etcd_address.h"
#include "router/sources/worker_entry.h"

namespace fathom {
namespace {

constexpr size_t kMostNotUnderstood = EtcdFollowerOptions{}.max_keys;
constexpr size_t kLongestReason = 256;  // bytes; it may quote what somebody wrote
constexpr RepeatRule kComplaints = {.freely = 8, .pause = std::chrono::minutes(1)};

Result<WorkerRequest> EntryOf(std::string_view value) {
  const std::string_view text = Trim(value);
  if (text.starts_with('{') || text.starts_with('"')) return ReadWorkerEntry(text);
  WorkerRequest request;
  request.url = text;
  return request;
}

}  // namespace

Result<std::unique_ptr<WorkerSource>> EtcdSource::Create(Loop& control, Resolver& resolver,
                                                         Muster& muster, const WorkerRequest& entry,
                                                         EtcdClientOptions options, Log& log) {
  TRY(const EtcdAddress address, EtcdAddress::Parse(entry.url));
  if (address.prefix.empty()) {
    return Fail(Blame::kCaller, "{}: a prefix is needed, e.g. etcd://HOST:2379/fleet", entry.url);
  }
  TRY(SourceDefaults defaults, SourceDefaults::Of(entry));
  TRY(auto client, EtcdClient::Create(control, resolver, address, std::move(options)));
  auto voice = muster.Open(address.ToString(), Muster::Rank::kFound);
  std::unique_ptr<EtcdSource> source(
      new EtcdSource(control, std::move(defaults), std::move(voice), address.prefix, log));
  source->client_ = std::move(client);
  EtcdListener& listener = *source;
  source->follower_ =
      std::make_unique<EtcdFollower>(control, *source->client_, address.prefix, listener);
  return std::unique_ptr<WorkerSource>(std::move(source));
}

void EtcdSource::Start() {
  follower_->Start();
  Spawn(TryAgain(life_));
}

Result<EtcdSource::Named> EtcdSource::Read(std::string_view value) const {
  TRY(WorkerRequest entry, EntryOf(value));
  // The URL itself is not part of the reason: it may contain a password.
  const auto url = Url::Parse(entry.url);
  if (!url) return Fail(Blame::kPeer, "its url is not http://HOST:PORT or https://HOST:PORT");
  entry.url = url->ToString();
  entry.from = WorkerRequest::From::kOutside;
  TRY(entry, defaults_.Fill(std::move(entry)));
  return Named{WorkerId::OfUrl(url->ToString()), std::move(entry)};
}

void EtcdSource::OnValue(std::string_view key, std::string_view value) {
  const auto named = Read(value);
  named ? Try(std::string(key), *named) : Complain(key, named.error().what);
}

void EtcdSource::Try(const std::string& key, const Named& named) {
  const auto taken = Take(key, named);
  if (!taken) return Complain(key, taken.error().what, named);
  not_understood_.erase(key);
  SayUnknown();
}

Task<void> EtcdSource::TryAgain(std::weak_ptr<Life> life) {
  constexpr Duration kPause = std::chrono::seconds(10);
  constexpr Duration kBreath = std::chrono::milliseconds(5);  // for the rest of the loop
  Loop& loop = loop_;
  std::string last;
  for (;;) {
    co_await loop.Sleep(last.empty() ? kPause : kBreath);
    if (life.expired()) co_return;
    last = TrySome(last);
  }
}

std::string EtcdSource::TrySome(const std::string& after) {
  constexpr size_t kAtOnce = 32;
  std::vector<std::pair<std::string, Named>> some;
  auto at = not_understood_.upper_bound(after);
  for (; at != not_understood_.end() && some.size() < kAtOnce; ++at) {
    if (at->second.entry) some.emplace_back(at->first, *at->second.entry);
  }
  const bool ended = at == not_understood_.end();
  for (const auto& [key, named] : some) Try(key, named);
  return ended ? "" : some.back().first;
}

Result<void> EtcdSource::Take(const std::string& key, Named named) {
  const auto holders = keys_.find(named.worker);
  const bool first = holders == keys_.end() || key <= *holders->second.begin();
  if (first) {
    TRY_VOID(source_->Put({.entry = named.entry, .because = {}, .place = {}}));
  }
  const auto before = named_.find(key);
  const bool moves = before != named_.end() && before->second.worker != named.worker;
  const WorkerId former = moves ? before->second.worker : named.worker;
  keys_[named.worker].insert(key);
  named_.insert_or_assign(key, std::move(named));
  // The worker that the key named before leaves after the new one has joined.
  if (moves) Release(key, former);
  return {};
}

void EtcdSource::Release(const std::string& key, WorkerId worker) {
  const auto holders = keys_.find(worker);
  if (holders == keys_.end()) return;
  const bool first = *holders->second.begin() == key;
  holders->second.erase(key);
  if (holders->second.empty()) {
    keys_.erase(holders);
    source_->Drop(worker, "removed from etcd");
    return;
  }
  if (!first) return;
  const std::string& next = *holders->second.begin();
  const auto put =
      source_->Put({.entry = named_.find(next)->second.entry, .because = {}, .place = {}});
  // If the key has a newer value, which was refused, that one is to be tried again.
  if (put || not_understood_.contains(next)) return;
  Complain(next, put.error().what, named_.find(next)->second);
}

void EtcdSource::OnGone(std::string_view key) {
  const std::string name(key);
  not_understood_.erase(name);
  if (const auto at = named_.find(name); at != named_.end()) {
    const WorkerId worker = at->second.worker;
    named_.erase(at);
    Release(name, worker);
  }
  SayUnknown();
}

void EtcdSource::OnListed(bool whole) {
  listed_ = true;
  if (whole) not_followed_.clear();
  if (!troubled_) source_->Ok();
  SayUnknown();
}

void EtcdSource::OnPassedOver(std::string_view key, std::string_view why) { Complain(key, why); }

void EtcdSource::Complain(std::string_view key, std::string_view reason,
                          std::optional<Named> entry) {
  const std::string why(reason.substr(0, kLongestReason));
  if (key.empty()) {
    not_followed_ = why;
  } else {
    const auto known = not_understood_.find(key);
    const bool same = known != not_understood_.end() && known->second.reason == why;
    if (known != not_understood_.end() || not_understood_.size() < kMostNotUnderstood) {
      not_understood_.insert_or_assign(std::string(key), Refused{why, std::move(entry)});
    }
    if (same) return;
  }
  SayUnknown();
  if (!complaints_.Next(loop_.now(), kComplaints)) return;
  log_.Warn("A key in etcd does not name a worker that can be used; what it named before stays",
            {{"source", source_->name()}, {"key", key}, {"reason", why}});
}

void EtcdSource::SayUnknown() {
  std::string unknown;
  if (!not_understood_.empty()) {
    const auto& [key, refused] = *not_understood_.begin();
    const std::string& why = refused.reason;
    unknown = not_understood_.size() == 1
                  ? fmt::format("key {} is not understood: {}", key, why)
                  : fmt::format("{} keys are not understood, for example {}: {}",
                                not_understood_.size(), key, why);
  }
  if (!not_followed_.empty()) {
    unknown +=
        fmt::format("{}some keys are not followed: {}", unknown.empty() ? "" : "; ", not_followed_);
  }
  const bool empty = listed_ && named_.empty() && unknown.empty();
  if (empty) {
    unknown = fmt::format(
        "there is no key below {0}: no worker is registered there, or the prefix is another one; "
        "see 'etcdctl get --prefix {0} --keys-only'",
        prefix_);
  }
  source_->SetUnknown(unknown);
  if (!empty || std::exchange(said_empty_, true)) return;
  log_.Warn("A source of workers does not see everything",
            {{"source", source_->name()}, {"reason", unknown}});
}

}  // namespace fathom
