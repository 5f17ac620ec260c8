// What becomes of messages with the role "developer" where the template does not know the word?
//
// vLLM makes each a message of the system. Some templates take only one of these, at the front: all
// of them are then merged there, with an empty line between their texts. A chat without such a
// message stays as it is, however many system messages it has.
#pragma once

#include "text/jinja/value.h"

namespace fathom {

// The messages as templates see them: dicts with a role and a content.
void FoldDeveloper(TemplateList& messages);

}  // namespace fathom
