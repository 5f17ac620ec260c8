// The events of a watch are the same however its bytes are cut; nothing that is read is beyond its
// bounds; a page's items are parts of its body.
#include <string>
#include <vector>

#include "base/check.h"
#include "codec/json_scan.h"
#include "io/kube/kube_event.h"
#include "io/kube/line_splitter.h"

namespace fathom {
namespace {

struct Seen {
  std::string name;
  std::string version;
  uint64_t content = 0;
  bool operator==(const Seen&) const = default;
};

std::vector<Seen> WatchInPieces(std::string_view in, size_t piece) {
  LineSplitter lines;
  std::vector<Seen> all;
  for (size_t at = 0; at < in.size(); at += piece) {
    lines.Feed(in.substr(at, piece));
    while (const auto line = lines.Next()) {
      const auto event = ReadKubeEvent(*line);
      if (!event) continue;
      CHECK(event->name.size() <= kMaxKubeName && event->version.size() <= kMaxKubeVersion);
      const bool error = event->kind == KubeEvent::Kind::kError;
      CHECK(error ? event->code >= 100 && event->code < 600 : !event->version.empty());
      all.push_back({event->name, event->version, KubeContentHash(event->object)});
    }
  }
  return all;
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  const std::string_view in(reinterpret_cast<const char*>(data), size);
  const std::vector<Seen> whole = WatchInPieces(in, in.size() + 1);
  for (const size_t piece : {1, 7}) CHECK(WatchInPieces(in, piece) == whole);
  if (const auto page = ReadKubePage(in)) {
    CHECK(!page->version.empty());
    JsonElements items(page->items);
    while (const auto item = items.Next()) {
      // Valid for the scanner; the parser may refuse what is not UTF-8.
      const auto object = Json::ParseWithLargeNumbers(*item);
      if (object) CHECK(KubeNameOf(*object).size() <= kMaxKubeName);
    }
  }
  return 0;
}
