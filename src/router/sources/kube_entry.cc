#include "router/sources/kube_entry.h"

#include <fmt/format.h>

#include "codec/url.h"

namespace fathom {
namespace {

std::string TcpAt(const std::string& host, uint16_t port) {
  return host.contains(':') ? fmt::format("tcp://[{}]:{}", host, port)
                            : fmt::format("tcp://{}:{}", host, port);
}

std::string_view BecauseOf(SourceSays says) {
  switch (says) {
    case SourceSays::kServe:
      return "";
    case SourceSays::kUnready:
      return "not ready in Kubernetes";
    case SourceSays::kDrain:
      return "its pod ends";
  }
  return "";
}

// The worker's own setting, or else what its pod says; nothing if the sum of ports is none.
std::optional<std::string> EventsAt(const std::optional<EventTemplate>& written,
                                    const KubeSighting& seen, std::optional<uint16_t> said) {
  if (written) {
    auto at = written->At(seen.host, seen.port);
    return at ? std::optional(*std::move(at)) : std::nullopt;
  }
  if (said) return TcpAt(seen.host, *said);
  return std::nullopt;
}

}  // namespace

Result<KubeEntry> KubeEntry::Make(const WorkerRequest& entry, std::string host_name,
                                  const Directory& directory) {
  KubeEntry made;
  made.entry_ = entry;
  made.host_name_ = std::move(host_name);
  if (entry.kv_events) {
    TRY(made.events_, EventTemplate::Parse(*entry.kv_events, "kv_events"));
  }
  if (entry.kv_events_replay) {
    TRY(made.replay_, EventTemplate::Parse(*entry.kv_events_replay, "kv_events_replay"));
  }
  const KubeSighting sample{.host = "192.0.2.1", .port = 1, .pod = {}, .uid = {}};
  auto plan = directory.Plan(made.For(sample, nullptr).entry);
  if (plan) return made;
  // The operator wrote the source, not the sample.
  Error error = std::move(plan).error();
  const std::string worker = "worker " + made.UrlOf(sample);
  if (const size_t at = error.what.find(worker); at != std::string::npos) {
    error.what.replace(at, worker.size(), entry.url);
  }
  return std::unexpected(std::move(error));
}

std::string KubeEntry::UrlOf(const KubeSighting& seen) const {
  return Url{
      .scheme = tls(seen) ? "https" : "http", .host = seen.host, .port = seen.port, .path = {}}
      .ToString();
}

Claim KubeEntry::For(const KubeSighting& seen, const PodFacts* facts) const {
  static const PodFacts unknown;
  const PodFacts& known = facts == nullptr ? unknown : *facts;
  Claim claim{.entry = entry_,
              .says = seen.says,
              .because = std::string(BecauseOf(seen.says)),
              .place = {}};
  WorkerRequest& worker = claim.entry;
  worker.url = UrlOf(seen);
  if (tls(seen)) worker.host_name = host_name_;
  worker.kv_events = EventsAt(events_, seen, known.events_port);
  worker.kv_events_replay = EventsAt(replay_, seen, known.replay_port);
  if (!worker.kv_events_topic) worker.kv_events_topic = known.topic;
  if (worker.role.empty()) worker.role = known.role;
  worker.labels.insert(known.labels.begin(), known.labels.end());
  return claim;
}

}  // namespace fathom
