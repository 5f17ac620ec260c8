// Which addresses do the name servers have for this name? One question, without I/O of its own.
//
// Asks for IPv4 and IPv6 addresses at once, of the name and, by the rules of resolv.conf, of the
// name with each search domain appended, one after the other until one of them has an address.
//
// Half an answer  If only one of the two families is answered, its addresses can be used
//                 kResolutionDelay later (RFC 8305). The lookup goes on until both are answered.
// Failures        A name server that refuses or fails lets the search go on, as in glibc. One that
//                 does not answer ends the lookup: the next candidate would be another host.
// Ending          Within kPatience, whatever the name servers do.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "io/net/address.h"
#include "io/net/dns_channel.h"
#include "io/net/net_error.h"

namespace fathom {

struct NameAnswer {
  std::vector<Address> addresses = {};
  Duration ttl{};
  bool complete = true;  // false: the question for one family failed, or is still open
};

// The names to ask for, in this order.
std::vector<std::string> CandidatesOf(const std::string& name,
                                      const std::vector<std::string>& search, size_t ndots);

class NameLookup : public std::enable_shared_from_this<NameLookup> {
 public:
  static constexpr Duration kResolutionDelay = std::chrono::milliseconds(50);
  static constexpr Duration kPatience = std::chrono::seconds(10);

  using Ask = std::function<void(const std::string& name, int family, DnsChannel::Done done)>;

  NameLookup(std::string name, TimePoint begun) : name_(std::move(name)), begun_(begun) {}

  // Asks; answers to earlier questions are ignored from now on.
  void Start(std::vector<std::string> candidates, Ask ask);
  // When OnTime() has something to do.
  TimePoint due() const;
  void OnTime(TimePoint now);

  bool done() const { return result_.has_value(); }
  const NetResult<NameAnswer>& result() const { return *result_; }
  // The first half of an answer, once its delay has passed.
  std::optional<NameAnswer> TakePartial();

 private:
  struct Family {
    int number;
    std::optional<RecordAnswer> answer = std::nullopt;
  };

  void AskForCandidate();
  void OnRecords(size_t round, Family& family, RecordAnswer answer);
  void Conclude();
  void ConcludeWithout(RecordStatus worst);
  NameAnswer Merged() const;
  bool Found(const Family& family) const {
    return family.answer && family.answer->status == RecordStatus::kFound;
  }

  const std::string name_;
  const TimePoint begun_;
  Ask ask_;
  std::vector<std::string> candidates_;
  size_t round_ = 0;  // counts questions; an answer to another one is ignored
  size_t candidate_ = 0;
  Family v4_{AF_INET};
  Family v6_{AF_INET6};
  std::optional<RecordStatus> failure_;  // of an earlier candidate
  TimePoint usable_at_ = kNever;
  bool half_known_ = false;  // one family is answered; usable_at_ is set at the next OnTime()
  bool partial_due_ = false;
  std::optional<NetResult<NameAnswer>> result_;
};

}  // namespace fathom
