#include "router/sources/source_defaults.h"

#include "codec/url.h"

namespace fathom {

Result<SourceDefaults> SourceDefaults::Of(const WorkerRequest& source) {
  SourceDefaults defaults;
  defaults.source_ = source;
  if (source.kv_events) {
    TRY(defaults.events_, EventTemplate::Parse(*source.kv_events, "kv_events"));
  }
  if (source.kv_events_replay) {
    TRY(defaults.replay_, EventTemplate::Parse(*source.kv_events_replay, "kv_events_replay"));
  }
  return defaults;
}

// Who named the variable of the key decides which it may be, so `from` goes with it.
Result<WorkerRequest> SourceDefaults::Fill(WorkerRequest entry) const {
  TRY(const Url url, Url::Parse(entry.url));
  if (entry.api_key_env.empty() && !source_.api_key_env.empty()) {
    entry.api_key_env = source_.api_key_env;
    entry.from = source_.from;
  }
  if (!entry.kv_events && events_) {
    TRY(entry.kv_events, events_->At(url.host, url.port));
  }
  if (!entry.kv_events_replay && replay_) {
    TRY(entry.kv_events_replay, replay_->At(url.host, url.port));
  }
  if (!entry.kv_events_topic) entry.kv_events_topic = source_.kv_events_topic;
  if (entry.ca_file.empty() && url.tls()) entry.ca_file = source_.ca_file;
  if (entry.role.empty()) entry.role = source_.role;
  entry.labels.insert(source_.labels.begin(), source_.labels.end());
  return entry;
}

}  // namespace fathom
