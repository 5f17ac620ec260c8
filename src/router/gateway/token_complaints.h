// Why do text prompts have no tokens, and what is the fix?
//
// Logged once per model and reason, and again after kQuiet with the number of requests since.
//
// Threads  Any. One mutex, taken only after a failure.
// Memory   kMost pairs of model and reason, with names of at most kLongestName bytes, because
//          clients choose the names. The others share one entry per reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/repeat_limit.h"
#include "router/gateway/token_source.h"
#include "text/chat/inexact.h"

namespace fathom {

class TokenComplaints {
 public:
  static constexpr Duration kQuiet = std::chrono::minutes(10);
  static constexpr size_t kMost = 256;
  static constexpr size_t kLongestName = 256;
  static constexpr std::string_view kOthers = "(others)";

  explicit TokenComplaints(Log& log) : log_(log) {}

  void Miss(std::string_view model, TokenFailure reason, TimePoint now);
  // The model's own files did not give the tokens. `problem` has details without text of the
  // prompt.
  void Miss(std::string_view model, Inexact why, std::string_view problem, TimePoint now);
  // A chat whose user text must stay literal is sent to its engine as text, not as tokens.
  void NotLiteral(std::string_view model, TimePoint now);

 private:
  using Key = std::pair<std::string_view, std::string>;  // the reason's name, and the model

  void Say(std::string_view complaint, std::string_view model, std::string_view reason,
           std::string_view problem, TimePoint now);
  RepeatLimit& LimitOf(Key& key, TimePoint now);

  Log& log_;
  std::mutex mutex_;  // guards the rest
  std::map<Key, RepeatLimit> limits_;
};

}  // namespace fathom
