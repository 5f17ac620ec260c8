// What holds for all workers of a source, written once?
//
// The long form of a source is a map with the fields of a worker entry. What a worker of the source
// does not say itself is taken from there. Event endpoints are templates (EventTemplate).
//
// Immutable.
#pragma once

#include <optional>

#include "base/result.h"
#include "router/discovery/directory.h"
#include "router/sources/event_template.h"

namespace fathom {

class SourceDefaults {
 public:
  // Of the source's own entry. Its URL is not looked at.
  static Result<SourceDefaults> Of(const WorkerRequest& source);

  // The entry with what it lacks. Fails if it has no URL of a worker.
  Result<WorkerRequest> Fill(WorkerRequest entry) const;

 private:
  WorkerRequest source_;
  std::optional<EventTemplate> events_;
  std::optional<EventTemplate> replay_;
};

}  // namespace fathom
