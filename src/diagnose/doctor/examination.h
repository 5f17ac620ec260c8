// Looks at everything that the operator named, and keeps what was seen.
//
// Errors  None here: what cannot be read or reached is noted and the rest is looked at all the
// same. Memory  Logs are read piece by piece. Manifests are held as they are.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "diagnose/doctor/case_file.h"
#include "diagnose/findings/report.h"

namespace fathom {

struct ExaminationPlan {
  LiveTargets live;
  bool kube = false;
  KubeTarget cluster;
  std::vector<std::string> logs;  // paths; "-" is standard input
  std::vector<std::string> manifests;
  std::vector<std::string> gpu_pages;  // output of nvidia-smi, pages of DCGM's exporter
  std::vector<std::string> gpu_urls;   // DCGM exporters
  std::string model;                   // config.json, or its folder; empty: none
  uint64_t weights = 0;                // bytes; 0: as the files say
  StatedCase stated;
  size_t probe_most = 0;  // conversations at once; 0: no probe
  std::string probe_model;
};

struct Examination {
  CaseFile seen;
  std::vector<LookedAt> looked_at;
  std::vector<SentRequest> sent;

  // Whether anything that was to be looked at could be.
  bool SawAnything() const;
  bool MissedAnything() const;
};

Examination Examine(const ExaminationPlan& plan);

}  // namespace fathom
