// How many prompt tokens did an engine find cached, by a stream of /v1/messages or /v1/responses?
//
// These streams always say it: in message_start and message_delta (an engine may know it only at
// the end), or in the response that the last event has.
//
// Memory  No event is kept.
#pragma once

#include <optional>
#include <string_view>

#include "router/gateway/usage_report.h"

namespace fathom {

class AgentUsage {
 public:
  // Whether Read() must see these bytes, which are whole events. A quick search.
  static bool Mentions(std::string_view events);
  void Read(std::string_view events);

  // The last one that was reported.
  const std::optional<EngineUsage>& usage() const { return usage_; }

 private:
  void ReadEvent(std::string_view data);
  void Take(std::string_view usage);

  std::optional<EngineUsage> usage_;
};

}  // namespace fathom
