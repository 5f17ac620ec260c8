// Which members does an engine's description of a body have, and what may they be?
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lab/mock/engine_words.h"
#include "lab/mock/mock_options.h"

namespace fathom {

enum class FieldForm : uint8_t {
  kAnything,
  kText,
  kInteger,
  kWord64,  // an integer of 64 bits
  kNumber,
  kFlag,
  kMap,          // an object whose members are data
  kRecord,       // an object whose members are fields
  kList,         // of anything
  kIntegers,     // a list of them
  kToken,        // an integer that is not negative
  kTokens,       // a list of them
  kTexts,        // a text or a list of texts
  kTextOrParts,  // a text or a list of records
  kPrompt,       // texts or ids, one or many
  kTextOrList,
  kChat,      // OpenAI's messages
  kDialogue,  // Anthropic's
  kTools,     // OpenAI's
  kSchemas,   // Anthropic's tools
  kStream,    // stream_options
  kName,      // a text that is not empty
  kPositive,  // an integer above 0
};

struct FieldRule {
  std::string_view name;
  FieldForm form = FieldForm::kAnything;
  bool null = false;      // may be null
  bool required = false;  // must be there
};

// The rules of a route, and where each name stands.
class FieldRules {
 public:
  // Lists of fields, in field_rules.cc's shorthand. `others`: a body may have more than these.
  FieldRules(std::initializer_list<std::string_view> lists, bool others);

  // In the order in which an engine tells their problems.
  std::span<const FieldRule> fields() const { return fields_; }
  bool others() const { return others_; }
  // Its place, or nothing.
  std::optional<size_t> Find(std::string_view name) const;

 private:
  void Add(std::string_view text);

  std::vector<FieldRule> fields_;
  std::unordered_map<std::string_view, size_t> places_;
  const bool others_;
};

// The route's; empty ones if nothing is known of it.
const FieldRules& RulesFor(MockedEngine engine, MockRoute route);

}  // namespace fathom
