// Where is the value of each name?
//
// Scopes are jinja2's: a loop, a macro, a block that is set, `with` and the like have their own; an
// `if` has not. A name that is set anywhere in a scope is the scope's own in all of it, and begins
// with the value that the scope around it has then.
#pragma once

#include "text/jinja/name_table.h"
#include "text/jinja/syntax.h"

namespace fathom {

// Fills in the places and slots of the whole template.
void ResolveNames(Function& root, NameTable& names);

}  // namespace fathom
