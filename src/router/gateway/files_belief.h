// Are the files of a model used to tokenize its prompts?
//
// Files that the operator has named are. Those that the router has found by itself may be of
// another version than the engine's, so the engine is heard first where it can be asked:
//
//   verdict     named, downloaded   found
//   agrees      used                used
//   differs     used                not used: the engine is asked
//   unknown     used                not used while the engine can be asked
//   cannot ask  used                used; events show whether the tokens are right
#pragma once

#include "router/fleet/token_parity.h"
#include "text/model/model_library.h"

namespace fathom {

class FilesBelief {
 public:
  // `may_ask`: engines are asked for tokens at all.
  static bool Uses(FilesOrigin origin, ParityVerdict verdict, bool may_ask) {
    if (origin != FilesOrigin::kFound) return true;
    if (verdict == ParityVerdict::kUnknown) return !may_ask;
    return verdict != ParityVerdict::kDiffers;
  }
};

}  // namespace fathom
