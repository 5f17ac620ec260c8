// Who has named this worker, and what is said of it there?
//
// Immutable once a member has it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fathom {

// Whether requests shall go to a worker, as far as its sources know.
enum class SourceSays : uint8_t {
  kServe,
  kUnready,  // not now: it has not said that it is ready, or says that it is not
  kDrain,    // no more: it is about to end
};

struct WorkerOrigin {
  std::vector<std::string> sources;           // the one whose word counts most first
  std::string role;                           // prefill, decode, both; empty: not said
  std::map<std::string, std::string> labels;  // of a pod, or written by an operator
  SourceSays says = SourceSays::kServe;
  std::string because;  // why it is not kServe, for operators

  friend bool operator==(const WorkerOrigin&, const WorkerOrigin&) = default;

  static const std::shared_ptr<const WorkerOrigin>& Unknown() {
    static const auto unknown = std::make_shared<const WorkerOrigin>();
    return unknown;
  }
};

}  // namespace fathom
