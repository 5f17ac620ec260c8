// Which words of a shown setting must not leave the machine?
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fathom {

// The lines of a setting with what stands after names like HF_TOKEN, API_KEY and --api-key, on the
// same line or the next ones, and in URLs before the @, replaced by ***. Errs on the side of
// hiding.
std::string WithoutSecrets(std::string_view lines);

// Which lines of a file have such words, one entry per line. A diff leaves those out: with other
// words in their place it would not apply.
std::vector<bool> SecretLines(std::string_view text);

}  // namespace fathom
