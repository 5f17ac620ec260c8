// What is known about a name, and until when may it be used?
//
// An answer is fresh for its TTL, at least kLeastTtl and at most kMostTtl. After that it is stale:
// it is used while a new one is looked up and while the name servers do not answer, for at most
// kStaleFor. A name server that reports that the name does not exist ends that at once.
//
// A failure is kept for kFailureFor, so that a name that cannot be looked up is asked for about
// once a second, however many connections want it.
//
// Threads  One at a time.
// Memory   At most kMaxNames and kMaxBytes; the least recently used leave.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "io/net/name_lookup.h"
#include "io/net/net_error.h"

namespace fathom {

// Where an answer comes from.
enum class NameSource : uint8_t { kNameServer, kHostsFile };

class NameCache {
 public:
  static constexpr Duration kLeastTtl = std::chrono::seconds(1);
  static constexpr Duration kMostTtl = std::chrono::minutes(5);
  static constexpr Duration kStaleFor = std::chrono::hours(1);
  static constexpr Duration kFailureFor = std::chrono::seconds(1);
  static constexpr size_t kMaxNames = 8192;
  static constexpr size_t kMaxBytes = size_t{16} << 20;

  struct Entry {
    std::string name;
    std::shared_ptr<const std::vector<Address>> addresses;  // nullptr: none are known
    NameSource source = NameSource::kNameServer;
    TimePoint found_at{};
    TimePoint fresh_until{};
    std::optional<NetError> failure;  // of the last lookup
    TimePoint failed_at{};
    bool stale_use_logged = false;

    bool Fresh(TimePoint now) const { return addresses != nullptr && now < fresh_until; }
    bool Usable(TimePoint now) const {
      return addresses != nullptr && (now < fresh_until || now - fresh_until < kStaleFor);
    }
    bool JustFailed(TimePoint now) const { return failure && now - failed_at < kFailureFor; }
  };

  // nullptr: nothing is known. Valid until the next call of any other function.
  Entry* Find(const std::string& name);

  void PutFound(const std::string& name, const NameAnswer& answer, NameSource source,
                TimePoint now);
  void PutFailure(const std::string& name, const NetError& failure, TimePoint now);

  // The hosts file, or the list of name servers, has changed. What the hosts file had is no longer
  // known; what name servers answered is stale; failures are forgotten.
  void OnNewSources(TimePoint now);

  size_t names() const { return entries_.size(); }
  size_t bytes() const { return bytes_; }

 private:
  using Entries = std::list<Entry>;  // the most recently used first

  static size_t BytesOf(const Entry& entry);
  Entry& Touch(const std::string& name);
  void Erase(Entries::iterator entry);
  void Trim();

  Entries entries_;
  std::unordered_map<std::string_view, Entries::iterator> by_name_;  // views of the entries' names
  size_t bytes_ = 0;
};

}  // namespace fathom
