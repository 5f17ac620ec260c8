// How one value is written into a field: width, sign, precision.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/jinja/bounded_text.h"
#include "text/jinja/value.h"

namespace fathom {

struct FormatSpec {
  std::string fill = " ";
  char align = 0;  // < > ^ =, or 0: as the type likes it
  char sign = '-';
  bool alternate = false;
  bool grouped = false;  // 1,000
  size_t width = 0;
  std::optional<size_t> precision;
  char type = 0;  // d f e g x o b s ..., or 0
};

// Whether that many characters, or digits, are more than anybody means.
bool IsTooWide(size_t width);

// An integer or a float; the spec's type says which letters are allowed.
Result<> AppendNumber(BoundedText& out, const TemplateValue& value, const FormatSpec& spec);
// A text, cut to the precision.
Result<> AppendField(BoundedText& out, std::string_view text, const FormatSpec& spec);

}  // namespace fathom
