#include "io/net/lookup_thread.h"

#include <poll.h>

#include <algorithm>
#include <utility>

namespace fathom {
namespace {

TimePoint Now() { return std::chrono::steady_clock::now(); }

}  // namespace

LookupThread::LookupThread(NameDesk& desk, DnsChannelOptions dns, std::string hosts_file)
    : desk_(desk),
      dns_(std::move(dns)),
      hosts_(std::move(hosts_file)),
      resolv_conf_(dns_.resolv_conf, kMaxResolvConf),
      thread_([this] { Run(); }) {}

LookupThread::~LookupThread() {
  desk_.Stop();
  thread_.join();
}

void LookupThread::Run() {
  OpenChannel();
  while (const auto names = desk_.TakeQuestions()) {
    RefreshFiles();
    for (const std::string& name : *names) Begin(name);
    Deliver();
    Poll();
    Deliver();
  }
  channel_.reset();  // calls back for open questions while the lookups still exist
}

void LookupThread::RefreshFiles() {
  const bool hosts_changed = hosts_.Refresh();
  const bool servers_changed = resolv_conf_.Refresh();
  if (!hosts_changed && !servers_changed) return;
  desk_.OnNewSources();
  if (!servers_changed) return;
  OpenChannel();
  for (const auto& [name, lookup] : lookups_) Ask(name, *lookup);
}

void LookupThread::OpenChannel() {
  auto opened = DnsChannel::Open(dns_);
  if (opened) {
    channel_ = *std::move(opened);
  } else {
    channel_problem_ = opened.error().what;  // an older channel stays in use
  }
}

void LookupThread::Begin(const std::string& name) {
  if (const auto* const addresses = hosts_.Find(name)) {
    return desk_.Publish(name, NameAnswer{.addresses = *addresses}, NameSource::kHostsFile);
  }
  if (channel_ == nullptr) {
    const auto failure =
        NetFail(NetCause::kNameServer, "cannot resolve '{}': {}", name, channel_problem_);
    return desk_.Publish(name, failure, NameSource::kNameServer);
  }
  auto& lookup = lookups_[name];
  lookup = std::make_shared<NameLookup>(name, Now());
  Ask(name, *lookup);
}

void LookupThread::Ask(const std::string& name, NameLookup& lookup) {
  auto candidates = CandidatesOf(name, channel_->search(), channel_->dots_of_complete_name());
  lookup.Start(std::move(candidates),
               [this](const std::string& full, int family, DnsChannel::Done done) {
                 channel_->Query(full, family, std::move(done));
               });
}

int LookupThread::PollMilliseconds() const {
  const TimePoint now = Now();
  Duration wait = Duration::max();
  if (channel_) wait = channel_->UntilTimeout().value_or(wait);
  for (const auto& [_, lookup] : lookups_) {
    wait = std::min(wait, std::max(lookup->due(), now) - now);
  }
  if (wait == Duration::max()) return -1;
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(wait).count());
}

void LookupThread::Poll() {
  std::vector<pollfd> polled = {{desk_.wake_descriptor(), POLLIN, 0}};
  if (channel_) channel_->AddTo(polled);
  ::poll(polled.data(), polled.size(), PollMilliseconds());
  if (channel_) channel_->Process(std::span(polled).subspan(1));
}

void LookupThread::Deliver() {
  const TimePoint now = Now();
  for (auto next = lookups_.begin(); next != lookups_.end();) {
    const auto here = next++;
    NameLookup& lookup = *here->second;
    lookup.OnTime(now);
    if (const auto partial = lookup.TakePartial()) desk_.PublishPartial(here->first, *partial);
    if (!lookup.done()) continue;
    desk_.Publish(here->first, lookup.result(), NameSource::kNameServer);
    lookups_.erase(here);
  }
}

}  // namespace fathom
