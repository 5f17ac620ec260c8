#include "diagnose/findings/html_text.h"

#include "diagnose/findings/shown_text.h"

namespace fathom {

std::string HtmlText(std::string_view text) { return HtmlCode(OneLine(text)); }

std::string HtmlCode(std::string_view line) {
  std::string out;
  for (const char c : line) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace fathom
