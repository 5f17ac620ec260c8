#include "diagnose/sizing/dcgm.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>

#include "codec/prometheus_text.h"
#include "diagnose/sizing/binary_units.h"

namespace fathom {
namespace {

constexpr double kMostMiB = 1e9;

std::string LabelOf(const PrometheusSample& sample, std::initializer_list<std::string_view> names) {
  std::string scratch;
  for (const std::string_view name : names) {
    const auto value = sample.Label(name, scratch);
    if (value && !value->empty()) return std::string(value->substr(0, kMaxGpuName));
  }
  return "";
}

// What the exporter says of one GPU, or of one slice of it.
struct Exported {
  GpuReading reading;
  std::optional<uint64_t> reserved;
};

std::optional<uint64_t>* MemoryField(std::string_view name, Exported& gpu) {
  if (name == "DCGM_FI_DEV_FB_TOTAL") return &gpu.reading.total;
  if (name == "DCGM_FI_DEV_FB_USED") return &gpu.reading.used;
  if (name == "DCGM_FI_DEV_FB_FREE") return &gpu.reading.free;
  if (name == "DCGM_FI_DEV_FB_RESERVED") return &gpu.reserved;
  return nullptr;
}

void Take(const PrometheusSample& sample, Exported& gpu) {
  if (!(sample.value() >= 0)) return;
  if (sample.name() == "DCGM_FI_DEV_GPU_UTIL") {
    gpu.reading.busy = std::min(1.0, sample.value() / 100);
  } else if (auto* field = MemoryField(sample.name(), gpu); field && sample.value() < kMostMiB) {
    *field = static_cast<uint64_t>(sample.value() * kMiB);
  }
  GpuReading& reading = gpu.reading;
  if (reading.name.empty()) reading.name = LabelOf(sample, {"modelName"});
  if (reading.pod.empty()) reading.pod = LabelOf(sample, {"exported_pod", "pod"});
}

bool IsOfGpus(std::string_view name) {
  return name == "DCGM_FI_DEV_GPU_UTIL" || name.starts_with("DCGM_FI_DEV_FB_");
}

}  // namespace

Result<std::vector<GpuReading>> ReadDcgm(std::string_view page) {
  std::map<std::pair<std::string, std::string>, size_t> places;
  std::vector<Exported> gpus;
  PrometheusReader reader(page);
  while (const auto sample = reader.Next()) {
    if (!IsOfGpus(sample->name())) continue;
    std::string host = LabelOf(*sample, {"Hostname", "hostname"});
    std::string gpu = LabelOf(*sample, {"gpu"});
    if (const std::string slice = LabelOf(*sample, {"GPU_I_ID"}); !slice.empty()) {
      gpu.append("/").append(slice);
    }
    const auto [place, fresh] = places.try_emplace({host, gpu}, gpus.size());
    if (fresh) {
      if (gpus.size() == kMaxGpus) return Fail(Blame::kCaller, "more than {} GPUs", kMaxGpus);
      gpus.emplace_back();
      gpus.back().reading.host = std::move(host);
      gpus.back().reading.gpu = std::move(gpu);
    }
    Take(*sample, gpus[place->second]);
  }
  std::vector<GpuReading> readings;
  for (Exported& gpu : gpus) {
    GpuReading& reading = gpu.reading;
    if (!reading.total && reading.used && reading.free && gpu.reserved) {
      reading.total = *reading.used + *reading.free + *gpu.reserved;
    }
    if (reading.total || reading.used || reading.free) readings.push_back(std::move(reading));
  }
  if (readings.empty()) {
    return Fail(Blame::kCaller,
                "no GPU in it: DCGM_FI_DEV_FB_USED and DCGM_FI_DEV_FB_FREE of "
                "dcgm-exporter are looked for");
  }
  return readings;
}

}  // namespace fathom
