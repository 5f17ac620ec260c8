// Images and the like, told in words: what an engine with a tokenizer and no eyes makes of them.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "text/chat/inexact.h"

namespace fathom {

// Whether a prompt is not known because of a part that is no text.
bool IsPart(Inexact why);

// The messages of a chat, each part that is no text replaced by the text [type:hash]: another image
// has another text, the same image always the same.
Result<std::string> DescribeParts(std::string_view messages);

}  // namespace fathom
