// Where does this entry lead: to a worker, to a DNS name, to a cluster, to a file?
//
// One list of entries for all kinds. http(s):// is a worker, dns+http(s):// a name; other schemes
// lead to whoever was named for them with Teach().
//
// Threads  Teach() before the control loop runs, and Add() too for schemes that were taught; the
//          rest from any thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "router/sources/dns_watch.h"
#include "router/sources/muster.h"

namespace fathom {

// Follows what names workers, and claims them. Its claims end with it.
class WorkerSource {
 public:
  virtual ~WorkerSource() = default;
  // On the control loop, once.
  virtual void Start() = 0;
};

class WorkerSources {
 public:
  // Checks the whole entry, and opens nothing yet.
  using Maker = std::function<Result<std::unique_ptr<WorkerSource>>(const WorkerRequest& entry)>;

  WorkerSources(Loop& control, Muster& muster, DnsWatch& dns)
      : loop_(control),
        muster_(muster),
        dns_(dns),
        operator_(muster.Open("configuration", Muster::Rank::kOperator)),
        admin_(muster.Open("POST /workers", Muster::Rank::kAdmin)) {}

  void Teach(std::string scheme, Maker maker);

  // The operator's own entry; `place` says where it is written.
  Result<void> Add(const WorkerRequest& entry, std::string place);

  // An entry with http(s)://, by an admin call. kCaller: it is not valid, or already named by hand.
  Result<std::shared_ptr<Worker>> Join(const WorkerRequest& entry);
  // The same with dns+http(s)://.
  Result<DnsWatch::NameState> Watch(const WorkerRequest& entry) { return dns_.Watch(entry); }
  // Whether the worker is there because somebody wrote its URL.
  bool IsWritten(WorkerId id) const { return operator_->Claims(id) || admin_->Claims(id); }
  // Takes a worker out, or a name with all of its workers.
  bool Leave(WorkerId id) { return dns_.Leave(id) || muster_.TakeOut(id); }

  std::vector<DnsWatch::NameState> Names() const { return dns_.Names(); }
  std::vector<Muster::SourceState> States() const { return muster_.Sources(); }
  size_t followed() const { return muster_.followed(); }

 private:
  Result<WorkerId> Put(Muster::Source& source, const WorkerRequest& entry, std::string place);

  Loop& loop_;
  Muster& muster_;
  DnsWatch& dns_;
  const std::unique_ptr<Muster::Source> operator_;
  const std::unique_ptr<Muster::Source> admin_;
  std::map<std::string, Maker, std::less<>> makers_;
  std::vector<std::unique_ptr<WorkerSource>> followed_;
};

}  // namespace fathom
