// Why do prompts that are given as text go without their tokens, and what can be done about it?
//
// Said in the log, once per model and reason, and after kQuiet again with how many since.
//
// Threads  Any. One mutex, taken only when something went wrong.
// Memory   kMost models and reasons, of names that have at most kLongestName bytes: clients write
//          what they like there. The others share one entry per reason.
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
#include "gateway/token_source.h"
#include "model/inexact.h"

namespace fathom {

class TokenComplaints {
 public:
  static constexpr Duration kQuiet = std::chrono::minutes(10);
  static constexpr size_t kMost = 256;
  static constexpr size_t kLongestName = 256;
  static constexpr std::string_view kOthers = "(others)";

  explicit TokenComplaints(Log& log) : log_(log) {}

  void Miss(std::string_view model, TokenFailure reason, TimePoint now);
  // The model's own files did not give the tokens. `problem` says more, and nothing of the prompt.
  void Miss(std::string_view model, Inexact why, std::string_view problem, TimePoint now);
  // A chat whose user text shall stay text goes to its engine as text, not as tokens.
  void NotLiteral(std::string_view model, TimePoint now);

 private:
  struct Entry {
    uint64_t unsaid = 0;  // requests
    TimePoint due{};      // not to be said before
  };
  using Key = std::pair<std::string_view, std::string>;  // the reason's name, and the model

  void Say(std::string_view complaint, std::string_view model, std::string_view reason,
           std::string_view problem, TimePoint now);
  Entry& EntryOf(Key& key, TimePoint now);

  Log& log_;
  std::mutex mutex_;  // guards the rest
  std::map<Key, Entry> entries_;
};

}  // namespace fathom
