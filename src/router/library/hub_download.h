// How do the small files of a model come from a hub into the cache?
//
// The protocol is that of Hugging Face's tools: GET {endpoint}/{name}/resolve/{revision}/{file}.
// Files that the router does not read are never asked for, least of all weights. A commit that is
// in the cache is not asked for again. The revision's commit is the one of the first answer; all
// other files are of that commit. Redirects are followed, and the token stays with the hub's own
// host.
//
// Threads  On the loop, which waits for the disk: not one that serves requests.
// Memory   One file at a time, of at most ModelSearch::kMostTokenizerBytes.
// Errors   What happened and what to do. A refusal will not change by asking again.
#pragma once

#include <expected>
#include <memory>
#include <string>

#include "io/http/fetch.h"
#include "router/library/hub_cache.h"
#include "router/library/hub_environment.h"

namespace fathom {

struct HubFailure {
  std::string what;
  bool refused = false;  // by the hub, or by the settings: no such model, no access, offline
};

class HubDownload {
 public:
  static constexpr int kMostRedirects = 5;
  static constexpr Duration kMostPerFile = std::chrono::minutes(2);

  // kCaller: the endpoint or the certificates are wrong, or there is no place for a cache.
  static Result<HubDownload> Create(Loop& loop, Resolver& resolver, const HubEnvironment& hub);

  // The snapshot's folder, with a tokenizer in it. Must not be destroyed before the task has ended.
  Task<std::expected<std::string, HubFailure>> Run(HubRef ref, TimePoint deadline);
  // Without asking the hub.
  std::optional<std::string> Cached(const HubRef& ref) const;

 private:
  struct File;  // an answer
  struct Target;

  HubDownload(Loop& loop, Resolver& resolver, HubEnvironment hub, Url endpoint,
              std::shared_ptr<const TlsClientContext> tls)
      : loop_(&loop),
        resolver_(&resolver),
        hub_(std::move(hub)),
        endpoint_(std::move(endpoint)),
        tls_(std::move(tls)),
        cache_(hub_.caches.front()) {}

  Task<std::expected<File, HubFailure>> Get(const HubRef& ref, std::string revision,
                                            std::string_view name, TimePoint deadline);
  HubFailure Refusal(const HubRef& ref, const File& file) const;
  std::string Unreachable(const std::string& why) const;

  Loop* loop_;
  Resolver* resolver_;
  HubEnvironment hub_;
  Url endpoint_;
  std::shared_ptr<const TlsClientContext> tls_;
  HubCache cache_;
};

// For tools: waits until the files of "hf:ORG/NAME" are there, at most a few minutes. The copy in
// the cache is used if the hub fails.
Result<std::string> FolderFromHub(std::string_view text, const HubEnvironment& hub);

}  // namespace fathom
