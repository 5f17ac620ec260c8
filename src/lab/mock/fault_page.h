// Which faults does a running mock have, and can it be rid of them? GET and POST /mock/faults.
//
// An object with a member per fault, named as its option with _ for -; durations are numbers of
// seconds. What a POST does not name stays as it is.
//
// Errors  kCaller, one line that names the member and what it may be.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "lab/mock/mock_options.h"

namespace fathom {

// All of them, as they are.
std::string FaultsPage(const MockOptions& options);

// The same options with these faults instead.
Result<MockOptions> WithFaults(MockOptions options, std::string_view body);

// The words that options and this page have for them. An error for others.
Result<PromptFault> ParsePromptFault(std::string_view word);
Result<EventOmission> ParseEventOmission(std::string_view word);

}  // namespace fathom
