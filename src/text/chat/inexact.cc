#include "text/chat/inexact.h"

#include <array>

namespace fathom {

std::string_view Name(Inexact why) {
  constexpr std::array<std::string_view, kInexact> kNames = {
      "image",           "audio",        "video",       "file",
      "unknown_part",    "own_template", "no_template", "template_refused",
      "template_failed", "not_a_prompt", "too_long",    "too_late",
      "overload",        "truncated"};
  return kNames[static_cast<size_t>(why)];
}

bool EngineMayKnow(Inexact why) {
  return why == Inexact::kOwnTemplate || why == Inexact::kNoTemplate ||
         why == Inexact::kTemplateFailed;
}

}  // namespace fathom
