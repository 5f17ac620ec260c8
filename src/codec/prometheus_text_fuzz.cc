// A page gives the same samples whether it is read as a whole or line by line, and a sample that is
// written again is read as the same sample.
#include <cmath>
#include <string>
#include <vector>

#include "base/check.h"
#include "codec/prometheus_text.h"

namespace fathom {
namespace {

struct Reading {
  std::vector<PrometheusSample> samples;
  uint64_t skipped = 0;

  void Add(std::string_view page) {
    PrometheusReader reader(page);
    while (const auto sample = reader.Next()) samples.push_back(*sample);
    skipped += reader.skipped();
  }
};

bool SameNumber(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void CheckSame(const PrometheusSample& a, const PrometheusSample& b) {
  CHECK(a.name() == b.name());
  CHECK(a.labels() == b.labels());
  CHECK(SameNumber(a.value(), b.value()));
}

void CheckInside(std::string_view part, std::string_view whole) {
  if (part.empty()) return;
  CHECK(part.data() >= whole.data());
  CHECK(part.data() + part.size() <= whole.data() + whole.size());
}

void CheckWrittenAgain(const PrometheusSample& sample) {
  std::string line(sample.name());
  line.append("{").append(sample.labels()).append("} 1");
  Reading again;
  again.Add(line);
  CHECK(again.skipped == 0 && again.samples.size() == 1);
  CHECK(again.samples[0].name() == sample.name());
  std::string scratch_here;
  std::string scratch_there;
  for (const std::string_view name : {"engine", "a", "block_size"}) {
    const auto here = sample.Label(name, scratch_here);
    const auto there = again.samples[0].Label(name, scratch_there);
    CHECK(here == there);
    if (here) CHECK(here->size() <= sample.labels().size());
  }
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  const std::string_view page(reinterpret_cast<const char*>(data), size);
  Reading whole;
  whole.Add(page);

  Reading by_line;
  for (std::string_view rest = page; !rest.empty();) {
    const size_t end = rest.find('\n');
    by_line.Add(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  CHECK(whole.skipped == by_line.skipped);
  CHECK(whole.samples.size() == by_line.samples.size());
  for (size_t i = 0; i < whole.samples.size(); ++i) {
    const PrometheusSample& sample = whole.samples[i];
    CheckSame(sample, by_line.samples[i]);
    CheckInside(sample.name(), page);
    CheckInside(sample.labels(), page);
    CheckWrittenAgain(sample);
  }
  return 0;
}
