#include "text/unicode/code_point_class.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "text/unicode/late_code_points.h"

namespace fathom {
namespace {

CodePointClass OfCategory(utf8proc_category_t category) {
  switch (category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT:
      return kUpperLetter | kWordPart;
    case UTF8PROC_CATEGORY_LL:
      return kLowerLetter | kWordPart;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return kOtherLetter | kWordPart;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return kMark | kWordPart;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
      return kNumber | kWordPart;
    case UTF8PROC_CATEGORY_NO:
      return kNumber;
    case UTF8PROC_CATEGORY_PC:
      return kPunctuation | kWordPart;
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return kPunctuation;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
      return kSymbol;
    default:
      return 0;
  }
}

bool Between(uint32_t value, uint32_t first, uint32_t last) {
  return value >= first && value <= last;
}

// The library knows no property of this name; the list has not changed since Unicode 6.3.
bool IsSpace(uint32_t value) {
  return Between(value, 0x9, 0xd) || value == 0x20 || value == 0x85 || value == 0xa0 ||
         value == 0x1680 || Between(value, 0x2000, 0x200a) || value == 0x2028 || value == 0x2029 ||
         value == 0x202f || value == 0x205f || value == 0x3000;
}

// What is Alphabetic though its category is So, and Join_Control.
bool IsWordPartByName(uint32_t value) {
  return Between(value, 0x24b6, 0x24e9) || Between(value, 0x1f130, 0x1f149) ||
         Between(value, 0x1f150, 0x1f169) || Between(value, 0x1f170, 0x1f189) || value == 0x200c ||
         value == 0x200d;
}

// Its parts, put together again. Nothing in the table is asked, because this is what it is made of.
bool StaysInNfc(uint32_t value) {
  constexpr auto kNfc = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  std::array<int32_t, 18> parts{};
  int boundary = 0;
  const auto count = utf8proc_decompose_char(static_cast<int32_t>(value), parts.data(),
                                             parts.size(), kNfc, &boundary);
  const auto composed = utf8proc_normalize_utf32(parts.data(), count, kNfc);
  return composed == 1 && parts[0] == static_cast<int32_t>(value);
}

bool IsSteadyInNfc(uint32_t value, const utf8proc_property_t& property) {
  if (value < 0x300) return true;
  // A vowel or a final consonant joins the Hangul syllable before it.
  if (Between(value, 0x1161, 0x1175) || Between(value, 0x11a8, 0x11c2)) return false;
  const bool joins_what_is_before =
      property.comb_index != UINT16_MAX && property.comb_index >= 0x8000;
  if (joins_what_is_before) return false;
  return property.decomp_seqindex == UINT16_MAX || property.decomp_type != 0 || StaysInNfc(value);
}

CodePointClass OfLate(uint32_t value) {
  const auto* found = std::ranges::lower_bound(kLateCodePoints, value, {}, &LateCodePoints::last);
  return found == std::end(kLateCodePoints) || found->first > value ? 0 : found->bits;
}

CodePointClass Classify(uint32_t value) {
  if (Between(value, 0xd800, 0xdfff)) return 0;
  const utf8proc_property_t& property = *utf8proc_get_property(static_cast<int32_t>(value));
  const bool assigned = property.category != UTF8PROC_CATEGORY_CN;
  CodePointClass bits =
      assigned ? OfCategory(static_cast<utf8proc_category_t>(property.category)) : OfLate(value);
  if (IsSpace(value)) bits |= kSpace;
  if (IsWordPartByName(value)) bits |= kWordPart;
  if (IsSteadyInNfc(value, property)) {
    bits |= property.combining_class == 0 ? kSteadyInNfc | kInertInNfc : kSteadyInNfc;
  }
  return bits;
}

}  // namespace

const CodePointClasses& CodePointClasses::Table() {
  static const CodePointClasses table;
  return table;
}

CodePointClasses::CodePointClasses() {
  std::map<std::array<CodePointClass, kBlock>, uint32_t> known;
  for (uint32_t i = 0; i < block_of_.size(); ++i) {
    std::array<CodePointClass, kBlock> block;
    for (uint32_t j = 0; j < kBlock; ++j) block[j] = Classify((i << kShift) + j);
    const auto [entry, is_new] = known.emplace(block, static_cast<uint32_t>(blocks_.size()));
    if (is_new) blocks_.insert(blocks_.end(), block.begin(), block.end());
    block_of_[i] = entry->second;
  }
}

}  // namespace fathom
