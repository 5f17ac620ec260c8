// Whatever is pasted, readings stay within their bounds; and one that names a GPU and its memory
// says the same when it is written as CSV and read again.
#include "diagnose/sizing/nvidia_smi.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "diagnose/sizing/gpu_memory.h"

namespace fathom {
namespace {

void CheckWrittenAgain(const GpuReading& reading) {
  const bool plain = reading.name.find_first_of(",\r\n") == std::string::npos;
  if (!reading.total || !reading.used || !plain) return;
  const std::string csv = fmt::format("name, memory.total [MiB], memory.used [MiB]\n{}, {}, {}\n",
                                      reading.name, *reading.total >> 20, *reading.used >> 20);
  const auto again = ReadNvidiaSmi(csv);
  // A name may be a heading, or the mark of another form.
  if (!again || again->size() != 1 || again->front().name != reading.name) return;
  CHECK(again->front().total == reading.total);
  CHECK(again->front().used == reading.used);
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto readings = ReadGpuMemory(text);
  if (!readings) {
    CHECK(!readings.error().what.empty());
    return 0;
  }
  CHECK(!readings->empty() && readings->size() <= kMaxGpus);
  for (const GpuReading& reading : *readings) {
    CHECK(reading.name.size() <= kMaxGpuName && reading.pod.size() <= kMaxGpuName);
    CHECK(!reading.busy || (*reading.busy >= 0 && *reading.busy <= 1));
    CheckWrittenAgain(reading);
  }
  return 0;
}
