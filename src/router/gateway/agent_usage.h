// How many prompt tokens did an engine find cached, by a stream of /v1/messages, /v1/responses or
// SGLang's /generate?
//
// These streams always say it: in message_start and message_delta (an engine may know it only at
// the end), in the response that the last event has, or in every event, of which one is read.
//
// Memory  No event is kept.
#pragma once

#include <optional>
#include <string_view>

#include "router/gateway/early_end.h"
#include "router/gateway/usage_report.h"

namespace fathom {

class AgentUsage {
 public:
  explicit AgentUsage(AnswerForm form = AnswerForm::kMessages) : form_(form) {}

  // The member of an answer, or of an event, that has it.
  static std::string_view MemberIn(AnswerForm form) {
    return form == AnswerForm::kGenerate ? "meta_info" : "usage";
  }
  // Whether Read() must see these bytes, which are whole events. A quick search.
  bool Mentions(std::string_view events) const;
  void Read(std::string_view events);

  // The last one that was reported.
  const std::optional<EngineUsage>& usage() const { return usage_; }

 private:
  void ReadEvent(std::string_view data);
  void Take(std::string_view usage);

  const AnswerForm form_;
  std::optional<EngineUsage> usage_;
};

}  // namespace fathom
