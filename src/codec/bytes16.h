// Sixteen bytes at once: which of them are equal to one, or in a range?
//
// Each test on them gives sixteen bytes, all ones for true and all zeros for false. Mask() turns
// those into one bit per byte, the first byte lowest. Bytes16 is the processor's own way;
// PlainBytes16 is the same byte by byte, for other processors and for tests to compare with.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace fathom {

class PlainBytes16 {
 public:
  static PlainBytes16 Load(const char* from) {
    return Make([&](size_t i) { return static_cast<uint8_t>(from[i]); });
  }
  PlainBytes16 Equal(char c) const {
    return Make([&](size_t i) { return v_[i] == static_cast<uint8_t>(c) ? 0xff : 0; });
  }
  PlainBytes16 InRange(unsigned char low, unsigned char high) const {
    return Make([&](size_t i) { return v_[i] >= low && v_[i] <= high ? 0xff : 0; });
  }
  PlainBytes16 AndNot(PlainBytes16 other) const {
    return Make([&](size_t i) { return v_[i] & ~other.v_[i]; });
  }
  PlainBytes16 operator|(PlainBytes16 other) const {
    return Make([&](size_t i) { return v_[i] | other.v_[i]; });
  }
  PlainBytes16 operator~() const {
    return Make([&](size_t i) { return ~v_[i]; });
  }
  uint32_t Mask() const {
    uint32_t mask = 0;
    for (size_t i = 0; i < 16; ++i) mask |= uint32_t{v_[i]} >> 7 << i;
    return mask;
  }

 private:
  static PlainBytes16 Make(auto byte) {
    PlainBytes16 bytes;
    for (size_t i = 0; i < 16; ++i) bytes.v_[i] = static_cast<uint8_t>(byte(i));
    return bytes;
  }
  std::array<uint8_t, 16> v_;
};

#if defined(__SSE2__)
class Bytes16 {
 public:
  static Bytes16 Load(const char* from) {
    return Bytes16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  Bytes16 Equal(char c) const { return Bytes16(_mm_cmpeq_epi8(v_, _mm_set1_epi8(c))); }
  Bytes16 InRange(unsigned char low, unsigned char high) const {
    const __m128i offset = _mm_sub_epi8(v_, _mm_set1_epi8(static_cast<char>(low)));
    const __m128i width = _mm_set1_epi8(static_cast<char>(high - low));
    return Bytes16(_mm_cmpeq_epi8(_mm_min_epu8(offset, width), offset));
  }
  Bytes16 AndNot(Bytes16 other) const { return Bytes16(_mm_andnot_si128(other.v_, v_)); }
  Bytes16 operator|(Bytes16 other) const { return Bytes16(_mm_or_si128(v_, other.v_)); }
  Bytes16 operator~() const { return Bytes16(_mm_xor_si128(v_, _mm_set1_epi8(-1))); }
  uint32_t Mask() const { return static_cast<uint32_t>(_mm_movemask_epi8(v_)); }

 private:
  explicit Bytes16(__m128i v) : v_(v) {}
  __m128i v_;
};
#elif defined(__aarch64__) && defined(__ARM_NEON)
class Bytes16 {
 public:
  static Bytes16 Load(const char* from) {
    return Bytes16(vld1q_u8(reinterpret_cast<const uint8_t*>(from)));
  }
  Bytes16 Equal(char c) const { return Bytes16(vceqq_u8(v_, vdupq_n_u8(static_cast<uint8_t>(c)))); }
  Bytes16 InRange(unsigned char low, unsigned char high) const {
    return Bytes16(vcleq_u8(vsubq_u8(v_, vdupq_n_u8(low)), vdupq_n_u8(high - low)));
  }
  Bytes16 AndNot(Bytes16 other) const { return Bytes16(vbicq_u8(v_, other.v_)); }
  Bytes16 operator|(Bytes16 other) const { return Bytes16(vorrq_u8(v_, other.v_)); }
  Bytes16 operator~() const { return Bytes16(vmvnq_u8(v_)); }
  uint32_t Mask() const {
    constexpr uint8_t kWeights[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t bits = vandq_u8(v_, vld1q_u8(kWeights));
    return vaddv_u8(vget_low_u8(bits)) | uint32_t{vaddv_u8(vget_high_u8(bits))} << 8;
  }

 private:
  explicit Bytes16(uint8x16_t v) : v_(v) {}
  uint8x16_t v_;
};
#else
using Bytes16 = PlainBytes16;
#endif

}  // namespace fathom
