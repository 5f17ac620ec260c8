#include "text/chat/engine_habits.h"

#include <algorithm>
#include <array>

namespace fathom {
namespace {

struct Parser {
  std::string_view name;
  ThoughtMarks marks;
};

// Those that do not mark thoughts with <think>.
constexpr auto kOtherMarks = std::to_array<Parser>({
    {"cohere_command4", {"<|START_THINKING|>", "<|END_THINKING|>"}},
    {"gemma4", {"<|channel>thought\n", "<channel|>"}},
    {"kimi", {"◁think▷", "◁/think▷"}},
    {"minimax-m3", {"<mm:think>", "</mm:think>"}},
    {"mistral", {"[THINK]", "[/THINK]"}},
});

}  // namespace

std::optional<ThoughtMarks> MarksOfParser(std::string_view reasoning_parser) {
  if (reasoning_parser.empty()) return std::nullopt;
  const auto* const other = std::ranges::find(kOtherMarks, reasoning_parser, &Parser::name);
  if (other != kOtherMarks.end()) return other->marks;
  return ThoughtMarks{"<think>", "</think>"};
}

}  // namespace fathom
