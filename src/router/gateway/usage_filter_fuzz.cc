// A stream must look the same to its client, and give the same usage, however it is split; and it
// must be unchanged if nothing is to be removed.
#include <algorithm>
#include <string>
#include <vector>

#include "base/check.h"
#include "testing/usage_stream.h"

namespace fathom {
namespace {

struct Result {
  std::string shown;
  std::optional<EngineUsage> usage;
  bool final = false;
  bool saw_null = false;

  bool operator==(const Result&) const = default;
};

Result PassInPieces(std::string_view in, const UsageWish& wish, size_t piece) {
  UsageStream stream(wish);
  while (!in.empty()) {
    // A separate copy, so that a sanitizer detects reads past the end.
    const std::vector<char> now(in.begin(), in.begin() + std::min(piece, in.size()));
    stream.Feed({now.data(), now.size()});
    in.remove_prefix(now.size());
  }
  stream.End();
  const UsageFilter& filter = stream.filter();
  return {stream.shown(), filter.usage(), filter.final(), filter.saw_null()};
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  using Action = UsageWish::Action;
  const std::string_view in(reinterpret_cast<const char*>(data), size);
  std::optional<EngineUsage> read;
  for (const UsageWish& wish : {UsageWish{Action::kRead, false}, UsageWish{Action::kTakeOut, false},
                                UsageWish{Action::kTakeOut, true}}) {
    const Result whole = PassInPieces(in, wish, std::max<size_t>(size, 1));
    for (const size_t piece : {1, 2, 17}) CHECK(PassInPieces(in, wish, piece) == whole);
    if (wish.action == Action::kRead) {
      CHECK(whole.shown == in);
      read = whole.usage;
    } else {
      CHECK(whole.usage == read);
    }
  }
  return 0;
}
