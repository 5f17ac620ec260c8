// Any bytes behind a fitting digest are refused or imported. What was imported is exported again,
// and that is a snapshot of as many blocks; a cleared rank has nothing left of it.
#include <string>
#include <string_view>

#include "base/check.h"
#include "router/index/holding_snapshot.h"
#include "router/index/prefix_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  const std::string content(reinterpret_cast<const char*>(data), size);
  (void)HoldingSnapshot::Open(content);
  const auto snapshot = HoldingSnapshot::Open(content + HoldingSnapshot::DigestOf(content));
  if (!snapshot) return 0;
  MemoryMeter meter(1 << 20);
  Epochs epochs;
  PrefixIndex index(snapshot->head().shape, epochs, meter, 1);
  Epochs::Seat seat(epochs);
  const auto rank = index.AddRank(snapshot->head().rank, seat);
  {
    HoldingImport importing(*rank, *snapshot);
    auto step = importing.Advance(7);
    while (step == HoldingImport::Step::kMore) step = importing.Advance(7);
    CHECK(rank->counters().held.value() <= snapshot->blocks());
    if (step == HoldingImport::Step::kDone) {
      HoldingExport exporting(*rank, snapshot->head());
      while (!exporting.Advance(7)) {
      }
      const auto again = HoldingSnapshot::Open(exporting.Take());
      CHECK(again.has_value() && again->head() == snapshot->head());
      CHECK(again->blocks() <= snapshot->blocks());
    }
  }
  rank->Clear();
  CHECK(rank->counters().held.value() == 0 && rank->counters().ghosts.value() == 0);
  return 0;
}
