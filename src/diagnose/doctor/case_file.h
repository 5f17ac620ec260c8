// Everything that the doctor has seen, before it judges any of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "diagnose/doctor/kube_look.h"
#include "diagnose/doctor/live_look.h"
#include "diagnose/doctor/probe.h"
#include "diagnose/lint/linter.h"
#include "diagnose/logs/log_facts.h"
#include "diagnose/manifest/program.h"
#include "diagnose/sizing/gpu_memory.h"
#include "diagnose/sizing/model_shape.h"

namespace fathom {

struct ReadLog {
  std::string name;
  LogFacts facts;
};

// What the operator stated on the command line; 0, empty or nothing: not stated.
struct StatedCase {
  EngineKind engine = EngineKind::kUnknown;
  std::string gpu;
  uint32_t tensor_parallel = 0;
  uint32_t pipeline_parallel = 0;
  uint32_t data_parallel = 0;
  std::string kv_dtype;
  double memory_fraction = 0;
  uint32_t block_size = 0;
  uint64_t max_sequences = 0;
  uint64_t replicas = 0;
  double concurrency = 0;
  double prompt_tokens = 0;
  double output_tokens = 0;
  double request_rate = 0;
  Duration turn_gap{};
};

struct CaseFile {
  std::vector<SourceFile> files;  // manifests, as they were read
  Deployment deployment;
  std::vector<LintFinding> lint;
  std::vector<ReadLog> logs;
  LiveView live;
  std::vector<GpuReading> gpus;
  std::optional<ModelShape> model;
  StatedCase stated;
  std::optional<ProbeReport> probe;
  std::optional<KubeView> kube;
};

}  // namespace fathom
