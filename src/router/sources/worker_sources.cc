#include "router/sources/worker_sources.h"

#include <utility>

#include "codec/url.h"

namespace fathom {

void WorkerSources::Teach(std::string scheme, Maker maker) {
  makers_.emplace(std::move(scheme), std::move(maker));
}

Result<void> WorkerSources::Add(const WorkerRequest& entry, std::string place) {
  const std::string_view url = entry.url;
  if (DnsWatch::IsName(url)) {
    TRY_VOID(dns_.Watch(entry));
    return {};
  }
  const auto taught = makers_.find(url.substr(0, url.find("://")));
  if (taught == makers_.end()) {
    TRY_VOID(Put(*operator_, entry, std::move(place)));
    return {};
  }
  TRY(auto source, taught->second(entry));
  loop_.Post([source = source.get()] { source->Start(); });
  followed_.push_back(std::move(source));
  return {};
}

Result<std::shared_ptr<Worker>> WorkerSources::Join(const WorkerRequest& entry) {
  // With nothing but its URL, a worker that was taken out is what its sources say, and leaves with
  // them.
  if (entry == WorkerRequest{.url = entry.url, .from = entry.from}) {
    TRY(const Url url, Url::Parse(entry.url));
    const WorkerId known = WorkerId::OfUrl(url.ToString());
    const bool returns = muster_.IsTakenOut(known);
    if (returns) muster_.PutBack(known);
    auto worker = muster_.Find(known);
    if (returns && worker != nullptr) return worker;
  }
  TRY(const WorkerId id, Put(*admin_, entry, ""));
  muster_.PutBack(id);
  auto worker = muster_.Find(id);
  if (worker != nullptr) return worker;
  admin_->Drop(id, "the fleet is full");
  return Fail(Blame::kOverload, "the fleet already has {} workers, which is the limit",
              Fleet::kMaxWorkers);
}

Result<WorkerId> WorkerSources::Put(Muster::Source& source, const WorkerRequest& entry,
                                    std::string place) {
  TRY(const WorkerId id, source.Put({.entry = entry, .because = {}, .place = std::move(place)}));
  dns_.WatchPlain(id);
  return id;
}

}  // namespace fathom
