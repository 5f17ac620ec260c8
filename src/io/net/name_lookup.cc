#include "io/net/name_lookup.h"

#include <algorithm>
#include <utility>

#include "io/net/address_order.h"

namespace fathom {
namespace {

bool IsFailure(RecordStatus status) {
  return status == RecordStatus::kTimeout || status == RecordStatus::kFailed ||
         status == RecordStatus::kBadAnswer;
}

NetError ErrorOf(const std::string& name, RecordStatus status) {
  const auto error = [&](NetCause cause, std::string_view reason) {
    return NetFail(cause, "cannot resolve '{}': {}", name, reason).error();
  };
  switch (status) {
    case RecordStatus::kTimeout:
      return error(NetCause::kNameTimeout, "no name server answered in time");
    case RecordStatus::kFailed:
      return error(NetCause::kNameServer, "the name servers refused or failed");
    case RecordStatus::kBadAnswer:
      return error(NetCause::kNameServer, "the name server's answer cannot be read");
    case RecordStatus::kNoData:
      return error(NetCause::kNoSuchName, "the name has no address");
    default:
      return error(NetCause::kNoSuchName, "the name does not exist");
  }
}

}  // namespace

std::vector<std::string> CandidatesOf(const std::string& name,
                                      const std::vector<std::string>& search, size_t ndots) {
  constexpr size_t kLongestName = 253;
  if (name.ends_with('.')) return {name};
  std::vector<std::string> candidates;
  for (const std::string& domain : search) {
    std::string full = name + "." + domain;
    if (full.size() <= kLongestName) candidates.push_back(std::move(full));
  }
  const bool complete = static_cast<size_t>(std::ranges::count(name, '.')) >= ndots;
  candidates.insert(complete ? candidates.begin() : candidates.end(), name);
  return candidates;
}

void NameLookup::Start(std::vector<std::string> candidates, Ask ask) {
  candidates_ = std::move(candidates);
  ask_ = std::move(ask);
  candidate_ = 0;
  failure_.reset();
  AskForCandidate();
}

void NameLookup::AskForCandidate() {
  const size_t round = ++round_;
  usable_at_ = kNever;
  half_known_ = partial_due_ = false;
  v4_.answer.reset();
  v6_.answer.reset();
  for (Family* const family : {&v4_, &v6_}) {
    if (round != round_) return;  // the first question was answered inside the call
    auto done = [lookup = weak_from_this(), round, family](RecordAnswer answer) {
      const auto self = lookup.lock();
      if (self) self->OnRecords(round, *family, std::move(answer));
    };
    ask_(candidates_[candidate_], family->number, std::move(done));
  }
}

void NameLookup::OnRecords(size_t round, Family& family, RecordAnswer answer) {
  if (round != round_ || done() || answer.status == RecordStatus::kCancelled) return;
  family.answer = std::move(answer);
  if (v4_.answer && v6_.answer) return Conclude();
  half_known_ = Found(family);
}

void NameLookup::Conclude() {
  if (Found(v4_) || Found(v6_)) {
    result_.emplace(Merged());
    return;
  }
  const RecordStatus statuses[] = {v4_.answer->status, v6_.answer->status};
  const auto failed = std::ranges::find_if(statuses, IsFailure);
  if (failed != std::end(statuses)) return ConcludeWithout(*failed);
  const bool exists = std::ranges::count(statuses, RecordStatus::kNoData) > 0;
  ConcludeWithout(exists ? RecordStatus::kNoData : RecordStatus::kNoName);
}

void NameLookup::ConcludeWithout(RecordStatus worst) {
  if (worst == RecordStatus::kFailed || (worst == RecordStatus::kNoData && !failure_)) {
    failure_ = worst;
  }
  const bool final = worst == RecordStatus::kTimeout || worst == RecordStatus::kBadAnswer;
  if (!final && candidate_ + 1 < candidates_.size()) {
    ++candidate_;
    return AskForCandidate();
  }
  result_.emplace(std::unexpected(ErrorOf(name_, final ? worst : failure_.value_or(worst))));
}

NameAnswer NameLookup::Merged() const {
  const std::vector<Address> none;
  NameAnswer merged;
  merged.ttl = Duration::max();
  for (const Family* const family : {&v4_, &v6_}) {
    if (Found(*family)) merged.ttl = std::min(merged.ttl, family->answer->ttl);
    if (!family->answer || IsFailure(family->answer->status)) merged.complete = false;
  }
  merged.addresses = InOrderOfPreference(Found(v4_) ? v4_.answer->addresses : none,
                                         Found(v6_) ? v6_.answer->addresses : none);
  return merged;
}

TimePoint NameLookup::due() const {
  if (half_known_) return TimePoint::min();
  return std::min(usable_at_, begun_ + kPatience);
}

void NameLookup::OnTime(TimePoint now) {
  if (done()) return;
  if (std::exchange(half_known_, false)) usable_at_ = now + kResolutionDelay;
  if (now >= usable_at_) {
    usable_at_ = kNever;
    partial_due_ = true;
  }
  if (now < begun_ + kPatience) return;
  ++round_;
  if (Found(v4_) || Found(v6_)) {
    result_.emplace(Merged());
  } else {
    result_.emplace(std::unexpected(ErrorOf(name_, RecordStatus::kTimeout)));
  }
}

std::optional<NameAnswer> NameLookup::TakePartial() {
  if (done() || !std::exchange(partial_due_, false)) return std::nullopt;
  return Merged();
}

}  // namespace fathom
