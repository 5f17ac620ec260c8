// Sixteen bytes at once must give what byte by byte gives, on every processor; this is also run for
// arm64. Each scan must stop where the definition of its byte says.
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "codec/byte_scan.h"

namespace fathom {
namespace {

template <class Bytes>
std::vector<uint32_t> Masks(const char* from, unsigned char low, unsigned char high) {
  const Bytes bytes = Bytes::Load(from);
  const Bytes equal = bytes.Equal(static_cast<char>(low));
  const Bytes inside = bytes.InRange(low, high);
  return {equal.Mask(),
          inside.Mask(),
          (equal | inside).Mask(),
          inside.AndNot(equal).Mask(),
          equal.AndNot(inside).Mask(),
          (~inside).Mask(),
          (~(equal | inside)).Mask()};
}

void CompareMasks(std::string_view in) {
  const auto a = static_cast<unsigned char>(in[0]);
  const auto b = static_cast<unsigned char>(in[1]);
  const unsigned char low = a < b ? a : b;
  const unsigned char high = a < b ? b : a;
  for (size_t at = 0; at + 16 <= in.size(); ++at) {
    CHECK(Masks<Bytes16>(in.data() + at, low, high) ==
          Masks<PlainBytes16>(in.data() + at, low, high));
  }
}

template <class Scan, class One>
void CompareScan(std::string_view in, Scan scan, One one) {
  // From each place, so that the end falls on every one of sixteen.
  for (size_t at = 0; at <= in.size() && at < 40; ++at) {
    const char* expected = in.data() + at;
    const char* const end = in.data() + in.size();
    while (expected != end && !one(static_cast<unsigned char>(*expected))) ++expected;
    CHECK(scan(in.data() + at, end) == expected);
  }
}

bool IsName(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

void CompareScans(std::string_view in) {
  CompareScan(in, FindLineEnd, [](unsigned char c) { return c == '\r' || c == '\n'; });
  CompareScan(in, FindNameEnd, [](unsigned char c) { return !IsName(c); });
  CompareScan(in, FindControl,
              [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; });
  CompareScan(in, FindStringByte,
              [](unsigned char c) { return c == '"' || c == '\\' || c < 0x20; });
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // In memory of its own size: reading behind the end is seen.
  const std::vector<char> copy(data, data + size);
  const std::string_view in(copy.data(), copy.size());
  if (in.size() >= 2) fathom::CompareMasks(in);
  fathom::CompareScans(in);
  return 0;
}
