// A stream must yield the same events however it is split, and splitting it where WholeEvents
// indicates must not split an event.
#include <string>
#include <vector>

#include "base/check.h"
#include "codec/sse.h"

namespace fathom {
namespace {

using Events = std::vector<std::string>;

Events ReadInPieces(std::string_view in, size_t piece) {
  SseReader reader;
  Events events;
  while (!in.empty()) {
    const std::string_view now = in.substr(0, piece);
    reader.Feed(now);
    in.remove_prefix(now.size());
    while (const auto data = reader.Next()) events.emplace_back(*data);
  }
  return events;
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  const std::string_view in(reinterpret_cast<const char*>(data), size);
  const Events whole = ReadInPieces(in, in.size());
  for (const size_t piece : {1, 2, 17}) CHECK(ReadInPieces(in, piece) == whole);

  const size_t cut = WholeEvents(in);
  CHECK(cut <= in.size());
  // No whole event follows the split, and everything before it is whole: readers of only one part
  // see the same events as a reader of both.
  CHECK(ReadInPieces(in.substr(0, cut), in.size()) == whole);
  CHECK(ReadInPieces(in.substr(cut), in.size()).empty());
  CHECK(WholeEvents(in.substr(0, cut)) == cut);
  CHECK(WholeEvents(in.substr(cut)) == 0);
  return 0;
}
