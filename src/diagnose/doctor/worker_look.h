// What does an engine say of itself, its cache and its events?
//
// It is recognised by pages that cost nothing (/kv_event_sources, /server_info, the owner in
// /v1/models), because /metrics takes something away from TensorRT-LLM; only then it is asked the
// rest.
//
// Threads  On the loop.
// Memory   Answers as ReadOnlyClient bounds them; at most kMaxModels models.
// Errors   None: what a page does not say stays unknown, `problem` says why there is nothing at
// all,
//          and `unseen` what was left out, and why.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnose/doctor/engine_counts.h"
#include "diagnose/doctor/read_only_client.h"
#include "engine/engine_report.h"
#include "router/events/event_source.h"

namespace fathom {

struct ServedModel {
  std::string id;
  std::string root;             // the files it was loaded from, as the engine names them
  uint64_t context_length = 0;  // 0: not said
};

// Where its events are, as it says.
struct PublishedEvents {
  enum class How : uint8_t {
    kUnknown,  // it does not say
    kStream,   // sources has them
    kGuessed,  // it does not say; sources has the port of vLLM's convention
    kPolled,   // TensorRT-LLM: each event is handed out once
    kOff,      // it says that it publishes none
  };
  How how = How::kUnknown;
  std::vector<EventSource> sources;
  std::string problem;    // why there are none, with the fix
  bool unlisted = false;  // vLLM answers, and lists no rank: its publisher is off
};

struct WorkerLook {
  static constexpr size_t kMaxModels = 64;

  std::string url;
  bool reached = false;
  std::string problem;
  EngineReport report;
  std::string version;
  std::optional<bool> healthy;
  std::vector<ServedModel> models;
  PublishedEvents events;
  bool has_metrics = false;
  EngineCounts counts;
  EngineLevels levels;
  std::vector<std::string> unseen;  // one sentence each
};

Task<WorkerLook> LookAtWorker(ReadOnlyClient& client);
// The counters once more, some time later; nothing where they cannot be read.
Task<std::optional<EngineCounts>> CountAgain(ReadOnlyClient& client, const WorkerLook& first);

// How an engine's owner in /v1/models calls it: "vllm", "sglang", "tensorrt_llm".
EngineKind EngineOwnedBy(std::string_view owner);

}  // namespace fathom
