#include "io/net/name_cache.h"

#include <algorithm>
#include <utility>

namespace fathom {

size_t NameCache::BytesOf(const Entry& entry) {
  constexpr size_t kOverhead = 128;  // of the list, the map and the allocator
  size_t bytes = sizeof(Entry) + kOverhead + entry.name.capacity();
  if (entry.addresses) bytes += entry.addresses->capacity() * sizeof(Address);
  if (entry.failure) bytes += entry.failure->what.capacity();
  return bytes;
}

NameCache::Entry* NameCache::Find(const std::string& name) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return &entries_.front();
}

// The entry of the name, which is not counted in bytes_ until the caller has changed it.
NameCache::Entry& NameCache::Touch(const std::string& name) {
  if (Entry* const known = Find(name)) {
    bytes_ -= BytesOf(*known);
    return *known;
  }
  Entry& entry = entries_.emplace_front();
  entry.name = name;
  by_name_.emplace(entry.name, entries_.begin());
  return entry;
}

void NameCache::PutFound(const std::string& name, const NameAnswer& answer, NameSource source,
                         TimePoint now) {
  Entry& entry = Touch(name);
  entry.addresses = std::make_shared<const std::vector<Address>>(answer.addresses);
  entry.source = source;
  entry.found_at = now;
  entry.fresh_until =
      source == NameSource::kHostsFile ? kNever : now + std::clamp(answer.ttl, kLeastTtl, kMostTtl);
  entry.failure.reset();
  entry.stale_use_logged = false;
  bytes_ += BytesOf(entry);
  Trim();
}

void NameCache::PutFailure(const std::string& name, const NetError& failure, TimePoint now) {
  Entry& entry = Touch(name);
  if (failure.cause == NetCause::kNoSuchName) entry.addresses.reset();
  entry.failure = failure;
  entry.failed_at = now;
  bytes_ += BytesOf(entry);
  Trim();
}

void NameCache::OnNewSources(TimePoint now) {
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto here = entry++;
    if (here->source == NameSource::kHostsFile || here->addresses == nullptr) {
      Erase(here);
      continue;
    }
    here->fresh_until = std::min(here->fresh_until, now);
    here->failed_at = now - kFailureFor;
  }
}

void NameCache::Erase(Entries::iterator entry) {
  bytes_ -= BytesOf(*entry);
  by_name_.erase(entry->name);
  entries_.erase(entry);
}

void NameCache::Trim() {
  while (entries_.size() > 1 && (entries_.size() > kMaxNames || bytes_ > kMaxBytes)) {
    Erase(std::prev(entries_.end()));
  }
}

}  // namespace fathom
