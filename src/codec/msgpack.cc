#include "codec/msgpack.h"

#include <algorithm>
#include <array>
#include <bit>

namespace fathom {
namespace {

using Type = MsgpackReader::Type;

// The meaning of a first byte from 0xc0 to 0xdf; other first bytes contain their value or size.
struct Shape {
  Type type;
  uint8_t width = 0;  // bytes of the number that follows
  bool is_signed = false;
  uint8_t fixed = 0;  // size of a fixext
};

constexpr std::array<Shape, 32> kShapes = {{
    {Type::kNil},
    {Type::kNone},  // 0xc1 is never used
    {Type::kBool},
    {Type::kBool},
    {Type::kBinary, 1},
    {Type::kBinary, 2},
    {Type::kBinary, 4},
    {Type::kExtension, 1},
    {Type::kExtension, 2},
    {Type::kExtension, 4},
    {Type::kFloat, 4},
    {Type::kFloat, 8},
    {Type::kInteger, 1},
    {Type::kInteger, 2},
    {Type::kInteger, 4},
    {Type::kInteger, 8},
    {Type::kInteger, 1, true},
    {Type::kInteger, 2, true},
    {Type::kInteger, 4, true},
    {Type::kInteger, 8, true},
    {Type::kExtension, 0, false, 1},
    {Type::kExtension, 0, false, 2},
    {Type::kExtension, 0, false, 4},
    {Type::kExtension, 0, false, 8},
    {Type::kExtension, 0, false, 16},
    {Type::kString, 1},
    {Type::kString, 2},
    {Type::kString, 4},
    {Type::kArray, 2},
    {Type::kArray, 4},
    {Type::kMap, 2},
    {Type::kMap, 4},
}};

// Bytes of a number, a truth value or nil, with the byte that begins it. 0: another value.
constexpr std::array<uint8_t, 256> kSimpleSizes = [] {
  std::array<uint8_t, 256> sizes{};
  for (size_t lead = 0; lead < sizes.size(); ++lead) {
    if (lead < 0x80 || lead >= 0xe0) sizes[lead] = 1;
    if (lead < 0xc0 || lead >= 0xe0) continue;
    const Shape& shape = kShapes[lead - 0xc0];
    const bool simple = shape.type == Type::kNil || shape.type == Type::kBool ||
                        shape.type == Type::kInteger || shape.type == Type::kFloat;
    if (simple) sizes[lead] = static_cast<uint8_t>(1 + shape.width);
  }
  return sizes;
}();

uint64_t LoadBigEndian(const char* from, size_t width) {
  uint64_t value = 0;
  for (size_t i = 0; i < width; ++i) value = value << 8 | static_cast<uint8_t>(from[i]);
  return value;
}

uint64_t ExtendSign(uint64_t value, size_t width) {
  const unsigned unused = static_cast<unsigned>(64 - 8 * width);
  return static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused);
}

}  // namespace

Type MsgpackReader::Peek() const {
  if (failed() || left() == 0) return Type::kNone;
  const auto lead = static_cast<uint8_t>(in_[at_]);
  if (lead < 0x80 || lead >= 0xe0) return Type::kInteger;
  if (lead < 0x90) return Type::kMap;
  if (lead < 0xa0) return Type::kArray;
  if (lead < 0xc0) return Type::kString;
  return kShapes[lead - 0xc0u].type;
}

bool MsgpackReader::Look(Head& head) {
  if (failed()) return false;
  if (left() == 0) return Fail("ends where a value should begin");
  const auto lead = static_cast<uint8_t>(in_[at_]);
  head.type = Peek();
  head.body = head.next = at_ + 1;
  if (lead < 0x80 || lead >= 0xe0) {
    head.negative = lead >= 0xe0;
    head.number = head.negative ? ExtendSign(lead, 1) : lead;
    return true;
  }
  if (lead < 0xa0) return LookAtSized(head, lead & 0x0fu);
  if (lead < 0xc0) return LookAtSized(head, lead & 0x1fu);

  const Shape& shape = kShapes[lead - 0xc0u];
  if (shape.type == Type::kNone) return Fail("has a byte that starts no value");
  if (left() - 1 < shape.width) return Fail("ends within a value");
  const uint64_t number = LoadBigEndian(in_.data() + head.body, shape.width);
  head.body = head.next = head.body + shape.width;
  switch (shape.type) {
    case Type::kNil:
      return true;
    case Type::kBool:
      head.number = lead & 1u;
      return true;
    case Type::kInteger:
      head.number = shape.is_signed ? ExtendSign(number, shape.width) : number;
      head.negative = shape.is_signed && static_cast<int64_t>(head.number) < 0;
      return true;
    case Type::kFloat:
      head.number = shape.width == 4 ? std::bit_cast<uint64_t>(static_cast<double>(
                                           std::bit_cast<float>(static_cast<uint32_t>(number))))
                                     : number;
      return true;
    default:
      return LookAtSized(head, shape.width == 0 ? shape.fixed : number);
  }
}

// The size is in bytes or in elements, and below 2^32.
bool MsgpackReader::LookAtSized(Head& head, uint64_t size) {
  uint64_t bytes = size;
  if (head.type == Type::kMap) bytes = size * 2;
  if (head.type == Type::kExtension) bytes = size + 1;
  if (bytes > in_.size() - head.body) return Fail("declares more elements or bytes than follow");
  if (head.type == Type::kArray || head.type == Type::kMap) {
    head.count = static_cast<uint32_t>(size);
    return true;
  }
  if (head.type == Type::kExtension) {
    head.number = static_cast<uint8_t>(in_[head.body]);
    ++head.body;
  }
  head.next = head.body + size;
  return true;
}

bool MsgpackReader::TakeIf(Type type, Head& head) {
  if (Peek() != type || !Look(head)) return false;
  at_ = head.next;
  return true;
}

bool MsgpackReader::Fail(const char* problem) {
  problem_ = problem;
  return false;
}

bool MsgpackReader::TakeNil() {
  Head head;
  return TakeIf(Type::kNil, head);
}

std::optional<bool> MsgpackReader::TakeBool() {
  Head head;
  if (!TakeIf(Type::kBool, head)) return std::nullopt;
  return head.number != 0;
}

std::optional<MsgpackInteger> MsgpackReader::TakeInteger() {
  Head head;
  if (!TakeIf(Type::kInteger, head)) return std::nullopt;
  return MsgpackInteger{head.number, head.negative};
}

std::optional<uint64_t> MsgpackReader::TakeUnsigned() {
  Head head;
  if (Peek() != Type::kInteger || !Look(head) || head.negative) return std::nullopt;
  at_ = head.next;
  return head.number;
}

std::optional<double> MsgpackReader::TakeFloat() {
  Head head;
  if (!TakeIf(Type::kFloat, head)) return std::nullopt;
  return std::bit_cast<double>(head.number);
}

std::optional<std::string_view> MsgpackReader::TakeString() {
  Head head;
  if (!TakeIf(Type::kString, head)) return std::nullopt;
  return in_.substr(head.body, head.next - head.body);
}

std::optional<std::string_view> MsgpackReader::TakeBinary() {
  Head head;
  if (!TakeIf(Type::kBinary, head)) return std::nullopt;
  return in_.substr(head.body, head.next - head.body);
}

std::optional<uint32_t> MsgpackReader::TakeArray() {
  Head head;
  if (!TakeIf(Type::kArray, head)) return std::nullopt;
  return head.count;
}

std::optional<uint32_t> MsgpackReader::TakeMap() {
  Head head;
  if (!TakeIf(Type::kMap, head)) return std::nullopt;
  return head.count;
}

std::optional<MsgpackExtension> MsgpackReader::TakeExtension() {
  Head head;
  if (!TakeIf(Type::kExtension, head)) return std::nullopt;
  return MsgpackExtension{static_cast<int8_t>(head.number),
                          in_.substr(head.body, head.next - head.body)};
}

// A counter of the values still to skip replaces a stack, so nesting depth is not limited. Each
// value needs a byte, which bounds the counter.
bool MsgpackReader::Skip() {
  uint64_t pending = 1;
  return SkipSome(pending, in_.size());
}

// Most values are simple ones.
void MsgpackReader::SkipSimple(uint64_t& pending, size_t until) {
  while (pending > 0 && at_ < until) {
    const size_t size = kSimpleSizes[static_cast<uint8_t>(in_[at_])];
    if (size == 0 || size > left() || pending - 1 > left() - size) return;
    at_ += size;
    --pending;
  }
}

bool MsgpackReader::SkipSome(uint64_t& pending, size_t bytes) {
  if (failed()) return false;
  const size_t until = at_ + std::min(bytes, left());
  for (;;) {
    SkipSimple(pending, until);
    if (pending == 0 || (at_ >= until && left() > 0)) return true;
    Head head;
    if (!Look(head)) return false;
    at_ = head.next;
    pending -= 1;
    pending += head.type == Type::kMap ? uint64_t{head.count} * 2 : head.count;
    if (pending > left()) return Fail("declares more elements or bytes than follow");
  }
}

}  // namespace fathom
