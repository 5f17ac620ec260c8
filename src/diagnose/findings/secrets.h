// Which words of a shown setting must not leave the machine?
#pragma once

#include <string>
#include <string_view>

namespace fathom {

// The lines of a diff or of a setting with what stands after names like HF_TOKEN, API_KEY and
// --api-key, on the same line or the next, and in URLs before the @, replaced by ***. Errs on the
// side of hiding.
std::string WithoutSecrets(std::string_view lines);

}  // namespace fathom
