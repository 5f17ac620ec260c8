// What does a msgpack document contain, one value at a time?
//
//   MsgpackReader in(payload);
//   const auto count = in.TakeArray();
//   const auto first = in.TakeInteger();
//
// Pull    Each TakeX() returns the next value if it is of that type and moves past it. Otherwise it
//         returns nothing and does not move, so that a caller may try another type. Of an array or
//         a map only the head is taken; the elements follow.
// Errors  Bytes that are not msgpack, or that end too early, make failed() true permanently: no
//         more values are returned, and problem() has the reason. An element needs at least one
//         byte, so a head that announces more elements than bytes are left is an error at
//         once: a caller may reserve what a head announces.
// Memory  None of its own. Strings are views of the input. A copy of the reader saves its position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fathom {

// Any msgpack integer: a u64, or a negative i64 in two's complement.
struct MsgpackInteger {
  uint64_t bits = 0;
  bool negative = false;
  friend bool operator==(const MsgpackInteger&, const MsgpackInteger&) = default;
};

struct MsgpackExtension {
  int8_t type = 0;
  std::string_view data;
  friend bool operator==(const MsgpackExtension&, const MsgpackExtension&) = default;
};

class MsgpackReader {
 public:
  enum class Type : uint8_t {
    kNil,
    kBool,
    kInteger,
    kFloat,
    kString,
    kBinary,
    kArray,
    kMap,
    kExtension,
    kNone,  // the end of the input, or a byte that is not msgpack
  };

  explicit MsgpackReader(std::string_view in) : in_(in) {}

  // The type of the next value, by its first byte alone.
  Type Peek() const;

  bool TakeNil();
  std::optional<bool> TakeBool();
  std::optional<MsgpackInteger> TakeInteger();
  std::optional<uint64_t> TakeUnsigned();  // an integer that is not negative
  std::optional<double> TakeFloat();       // of either width; integers are not floats
  std::optional<std::string_view> TakeString();
  std::optional<std::string_view> TakeBinary();
  std::optional<uint32_t> TakeArray();  // how many elements follow
  std::optional<uint32_t> TakeMap();    // how many pairs follow
  std::optional<MsgpackExtension> TakeExtension();

  // Moves past the next value with everything inside it. False: failed().
  bool Skip();
  // The same in steps: `pending` is 1 at first, and 0 when the value was passed. A step ends after
  // about `bytes`.
  bool SkipSome(uint64_t& pending, size_t bytes);

  size_t position() const { return at_; }
  size_t left() const { return in_.size() - at_; }
  // The bytes that were taken since an earlier position.
  std::string_view Since(size_t position) const { return in_.substr(position, at_ - position); }
  bool failed() const { return problem_ != nullptr; }
  std::string_view problem() const { return failed() ? problem_ : ""; }

 private:
  // The start of a value: its number (an integer's value, a float's or bool's bits, an extension's
  // type), and the position of its bytes.
  struct Head {
    Type type = Type::kNone;
    bool negative = false;
    uint64_t number = 0;
    uint32_t count = 0;  // elements of an array, pairs of a map
    size_t body = 0;     // where the bytes of a string begin
    size_t next = 0;     // where the next value begins
  };

  void SkipSimple(uint64_t& pending, size_t until);
  bool Look(Head& head);
  bool LookAtSized(Head& head, uint64_t size);
  bool TakeIf(Type type, Head& head);
  bool Fail(const char* problem);

  std::string_view in_;
  size_t at_ = 0;
  const char* problem_ = nullptr;
};

}  // namespace fathom
