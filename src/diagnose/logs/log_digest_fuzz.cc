// A log says the same however it is cut, and whatever it says, little of it is kept.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "diagnose/logs/log_digest.h"

namespace fathom {
namespace {

LogFacts ReadInPieces(std::string_view in, size_t piece) {
  LogDigest digest;
  while (!in.empty()) {
    const std::string_view now = in.substr(0, piece);
    digest.Feed(now);
    in.remove_prefix(now.size());
  }
  digest.End();
  CHECK(digest.MemoryBytes() < LogDigest::kMostBytes);
  return digest.facts();
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  const std::string_view in(reinterpret_cast<const char*>(data), size);
  const LogFacts whole = ReadInPieces(in, in.size());
  for (const size_t piece : {1, 7, 64}) CHECK(ReadInPieces(in, piece) == whole);
  CHECK(whole.recognised <= whole.lines);
  CHECK(whole.bytes == in.size());
  return 0;
}
