#include "codec/msgpack_writer.h"

#include <bit>

namespace fathom {

void MsgpackWriter::Number(unsigned marker, uint64_t value, int bytes) {
  Byte(marker);
  for (int i = bytes - 1; i >= 0; --i) Byte(static_cast<unsigned>(value >> (8 * i)) & 0xff);
}

void MsgpackWriter::Length(uint64_t length, unsigned small, uint64_t below, unsigned marker8,
                           unsigned marker16) {
  if (length < below) {
    Byte(small | static_cast<unsigned>(length));
  } else if (marker8 != 0 && length <= 0xff) {
    Number(marker8, length, 1);
  } else if (length <= 0xffff) {
    Number(marker16, length, 2);
  } else {
    Number(marker16 + 1, length, 4);
  }
}

MsgpackWriter& MsgpackWriter::Nil() {
  Byte(0xc0);
  return *this;
}

MsgpackWriter& MsgpackWriter::Bool(bool value) {
  Byte(value ? 0xc3 : 0xc2);
  return *this;
}

MsgpackWriter& MsgpackWriter::Unsigned(uint64_t value) {
  if (value <= 0x7f) {
    Byte(static_cast<unsigned>(value));
  } else if (value <= 0xff) {
    Number(0xcc, value, 1);
  } else if (value <= 0xffff) {
    Number(0xcd, value, 2);
  } else if (value <= 0xffffffff) {
    Number(0xce, value, 4);
  } else {
    Number(0xcf, value, 8);
  }
  return *this;
}

MsgpackWriter& MsgpackWriter::Signed(int64_t value) {
  if (value >= 0) return Unsigned(static_cast<uint64_t>(value));
  const auto bits = static_cast<uint64_t>(value);
  if (value >= -32) {
    Byte(static_cast<unsigned>(bits) & 0xff);
  } else if (value >= INT8_MIN) {
    Number(0xd0, bits, 1);
  } else if (value >= INT16_MIN) {
    Number(0xd1, bits, 2);
  } else if (value >= INT32_MIN) {
    Number(0xd2, bits, 4);
  } else {
    Number(0xd3, bits, 8);
  }
  return *this;
}

MsgpackWriter& MsgpackWriter::Double(double value) {
  Number(0xcb, std::bit_cast<uint64_t>(value), 8);
  return *this;
}

MsgpackWriter& MsgpackWriter::String(std::string_view utf8) {
  Length(utf8.size(), 0xa0, 32, 0xd9, 0xda);
  out_ += utf8;
  return *this;
}

MsgpackWriter& MsgpackWriter::Binary(std::string_view bytes) {
  Length(bytes.size(), 0, 0, 0xc4, 0xc5);
  out_ += bytes;
  return *this;
}

MsgpackWriter& MsgpackWriter::Array(uint32_t elements) {
  Length(elements, 0x90, 16, 0, 0xdc);
  return *this;
}

MsgpackWriter& MsgpackWriter::Map(uint32_t pairs) {
  Length(pairs, 0x80, 16, 0, 0xde);
  return *this;
}

}  // namespace fathom
