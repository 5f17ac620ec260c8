// How much KV cache has each engine, what is asked of it, and what would another setting do?
//
// One case per running worker; without any, one per engine of the manifests; without those, what
// the command line states. Numbers that nobody has said are missing, and the case says which option
// or source would bring them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diagnose/doctor/case_file.h"
#include "diagnose/sizing/what_if.h"

namespace fathom {

// Another setting, and what it would do.
struct MemoryChange {
  enum class Kind : uint8_t { kFraction, kDtype, kHost, kSequences };
  Kind kind{};
  std::string value;  // as it would be written: "0.95", "fp8"
  SizingOutcome outcome;
};

struct MemoryCase {
  std::string who;
  EngineKind engine = EngineKind::kUnknown;
  const Program* program = nullptr;  // where a manifest has it
  std::optional<KvBudget> budget;    // by arithmetic
  std::string budget_problem;        // why there is none
  std::optional<KvCapacity> capacity;
  Workload workload;
  std::optional<KvDemand> demand;
  std::vector<MemoryChange> changes;  // the most helpful first
  std::vector<std::string> grounds;   // where the numbers come from, one sentence each
  std::vector<std::string> missing;   // and what would bring others
};

constexpr size_t kMaxMemoryCases = 8;

std::vector<MemoryCase> MemoryCasesOf(const CaseFile& seen);

}  // namespace fathom
