// Does a template go through the parts of a message's content?
//
// The question that vLLM and SGLang ask to tell whether the template wants `content` as a list: is
// there a loop over the content of what another loop takes from `messages`, under whichever names,
// or over a variable that is called `content`?
#pragma once

#include "text/jinja/name_table.h"
#include "text/jinja/syntax.h"

namespace fathom {

bool LoopsOverContent(const Function& root, const NameTable& names);

}  // namespace fathom
