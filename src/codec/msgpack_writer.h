// Writes msgpack into a string, each value in as few bytes as possible.
//
//   MsgpackWriter w;
//   w.Map(2).String("type").String("BlockRemoved").String("hashes").Array(1).Unsigned(7);
//
// Of an array or a map only the head is written; the caller writes as many elements (or pairs) as
// it has announced.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace fathom {

class MsgpackWriter {
 public:
  MsgpackWriter& Nil();
  MsgpackWriter& Bool(bool value);
  MsgpackWriter& Unsigned(uint64_t value);
  MsgpackWriter& Signed(int64_t value);
  MsgpackWriter& Double(double value);
  MsgpackWriter& String(std::string_view utf8);
  MsgpackWriter& Binary(std::string_view bytes);
  MsgpackWriter& Array(uint32_t elements);
  MsgpackWriter& Map(uint32_t pairs);

  const std::string& text() const { return out_; }
  std::string Take() { return std::exchange(out_, {}); }

 private:
  void Byte(unsigned value) { out_.push_back(static_cast<char>(value)); }
  // The marker, then the number in that many bytes, the most significant first.
  void Number(unsigned marker, uint64_t value, int bytes);
  // For a length: `small` (if it is below `below`), or the marker of 8 (0: not available), 16 or 32
  // bits.
  void Length(uint64_t length, unsigned small, uint64_t below, unsigned marker8, unsigned marker16);

  std::string out_;
};

}  // namespace fathom
