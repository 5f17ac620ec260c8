#include "diagnose/findings/text_style.h"

#include <fmt/format.h>

#include "base/check.h"

namespace fathom {
namespace {

std::string_view Code(Ink ink) {
  switch (ink) {
    case Ink::kPlain:
      return "";
    case Ink::kStrong:
      return "1";
    case Ink::kFaint:
      return "2";
    case Ink::kRed:
      return "31";
    case Ink::kYellow:
      return "33";
    case Ink::kGreen:
      return "32";
    case Ink::kBlue:
      return "36";
  }
  CHECK(false);
}

}  // namespace

Ink InkOf(Tone tone) {
  switch (tone) {
    case Tone::kPlain:
      return Ink::kPlain;
    case Tone::kGood:
      return Ink::kGreen;
    case Tone::kDoubtful:
      return Ink::kYellow;
    case Tone::kBad:
      return Ink::kRed;
    case Tone::kFaint:
      return Ink::kFaint;
  }
  CHECK(false);
}

Ink InkOf(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return Ink::kRed;
    case Severity::kWarning:
      return Ink::kYellow;
    case Severity::kInfo:
      return Ink::kBlue;
  }
  CHECK(false);
}

std::string Paint(std::string_view text, Ink ink, const TextStyle& style) {
  const std::string_view code = Code(ink);
  if (!style.color || code.empty() || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

}  // namespace fathom
