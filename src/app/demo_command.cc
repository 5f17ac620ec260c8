#include "app/command.h"
namespace fathom {
int RunDemo(const Settings&, const Environment&, Log&) { return kExitFailed; }
}  // namespace fathom
