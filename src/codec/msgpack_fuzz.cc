// For any bytes, reading a value piece by piece and skipping it end at the same place, or both
// fail; and a copy of only the value's bytes reads the same.
#include <string_view>

#include "base/check.h"
#include "codec/msgpack.h"

namespace fathom {
namespace {

using Type = MsgpackReader::Type;

// Takes the next value, and adds the number of values that belong to it.
bool TakeAny(MsgpackReader& in, uint64_t& pending) {
  switch (in.Peek()) {
    case Type::kNil:
      return in.TakeNil();
    case Type::kBool:
      return in.TakeBool().has_value();
    case Type::kInteger: {
      MsgpackReader twin = in;
      const auto plain = twin.TakeUnsigned();
      const auto taken = in.TakeInteger();
      if (taken) CHECK(plain.has_value() == !taken->negative);
      return taken.has_value();
    }
    case Type::kFloat:
      return in.TakeFloat().has_value();
    case Type::kString:
      return in.TakeString().has_value();
    case Type::kBinary:
      return in.TakeBinary().has_value();
    case Type::kExtension:
      return in.TakeExtension().has_value();
    case Type::kArray: {
      const auto count = in.TakeArray();
      if (count) CHECK(*count <= in.left());
      pending += count.value_or(0);
      return count.has_value();
    }
    case Type::kMap: {
      const auto count = in.TakeMap();
      if (count) CHECK(uint64_t{*count} * 2 <= in.left());
      pending += uint64_t{count.value_or(0)} * 2;
      return count.has_value();
    }
    case Type::kNone:
      return false;
  }
  return false;
}

bool TakeWhole(MsgpackReader& in) {
  uint64_t pending = 1;
  while (pending > 0) {
    --pending;
    if (!TakeAny(in, pending)) return false;
  }
  return true;
}

bool SkipInSteps(MsgpackReader& in) {
  uint64_t pending = 1;
  while (pending > 0) {
    if (!in.SkipSome(pending, 3)) return false;
  }
  return true;
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  MsgpackReader in(std::string_view(reinterpret_cast<const char*>(data), size));
  while (in.left() > 0) {
    const MsgpackReader before = in;
    MsgpackReader skipping = in;
    const size_t begin = in.position();
    const bool skipped = skipping.Skip();
    CHECK(TakeWhole(in) == skipped);
    CHECK(skipping.failed() == !skipped);
    MsgpackReader stepping = before;
    CHECK(SkipInSteps(stepping) == skipped);
    CHECK(!skipped || stepping.position() == skipping.position());
    if (!skipped) break;
    CHECK(in.position() == skipping.position() && in.position() > begin);
    MsgpackReader alone(in.Since(begin));
    CHECK(alone.Skip() && alone.left() == 0);
  }
  return 0;
}
