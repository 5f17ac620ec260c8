// A prompt, its tokens and the keys of its blocks, as fathom tokenize shows them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/settings.h"
#include "router/gateway/request_fields.h"
#include "text/model/language_model.h"

namespace fathom {

struct PromptReport {
  std::optional<std::string> prompt;  // rendered; nullopt if the input has ids
  std::vector<TokenId> ids;
  std::vector<uint64_t> keys;  // of its complete blocks
  uint32_t block_size = 0;
  std::optional<Inexact> inexact;  // set if `ids` are only the beginning
};

class PromptReporter {
 public:
  PromptReporter(const LanguageModel& model, const Settings& settings);

  Result<PromptReport> OfText(std::string text) const;
  // The body of a request to one of these APIs.
  Result<PromptReport> OfRequest(std::string_view body, PromptApis apis) const;

 private:
  Result<PromptReport> OfPrompt(RenderedPrompt rendered, uint64_t seed) const;
  PromptReport WithKeys(PromptReport report, uint64_t seed) const;

  const LanguageModel& model_;
  const Settings& settings_;
};

// For programs: one line.
std::string AsJson(const PromptReport& report);
// For people.
std::string AsText(const PromptReport& report, const Tokenizer& tokenizer);

}  // namespace fathom
