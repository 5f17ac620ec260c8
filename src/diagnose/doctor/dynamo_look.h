// What does a Dynamo frontend say of its workers, its models and its KV router?
//
// GET /health and GET /metrics; both change nothing. Names of metrics differ between releases, and
// what a release does not have stays unknown.
//
// Threads  On the loop.
// Memory   At most kMaxModels models and kMaxInstances instances.
// Errors   None; `problem` says why there is nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/doctor/metrics_page.h"
#include "diagnose/doctor/read_only_client.h"

namespace fathom {

struct DynamoModel {
  std::string name;
  std::optional<double> block_size;  // tokens
  std::optional<double> kv_blocks;
  std::optional<double> max_num_seqs;
  std::optional<double> max_batched_tokens;
  std::optional<double> context_length;
};

struct DynamoInstance {
  std::string component;
  std::string endpoint;
  std::string id;
};

struct DynamoLook {
  static constexpr size_t kMaxModels = 64;
  static constexpr size_t kMaxInstances = 4096;

  std::string url;
  bool reached = false;
  std::string problem;
  std::string status;  // "healthy", "not_ready"
  std::string message;
  std::vector<DynamoInstance> instances;
  bool has_metrics = false;
  std::vector<DynamoModel> models;
  MetricsPage::ByLabel events_by_status;  // "ok", "parent_block_not_found", ...
  MetricsPage::ByLabel events_by_type;    // "stored", "removed", "cleared"
  Observations hit_rate;                  // predicted, 0 to 1, per request
  Observations overlap_lost;              // blocks
  Observations first_token;               // seconds
  Observations prompt_length;             // tokens
  Observations cached_tokens;             // per request, as engines report them
  std::optional<double> requests;
  std::optional<double> active_prefill_tokens;
  std::optional<double> active_decode_blocks;
  std::optional<double> queued_requests;
  std::optional<double> registered_workers;
  std::optional<double> source_mismatch_workers;

  // Share of the events that were not applied; nothing before the first.
  std::optional<double> NotApplied() const;
};

Task<DynamoLook> LookAtDynamo(ReadOnlyClient& client);

// Readers of its pages, on their own.
void ReadDynamoHealth(int status, std::string_view page, DynamoLook& look);
void ReadDynamoMetrics(const MetricsPage& page, DynamoLook& look);

}  // namespace fathom
