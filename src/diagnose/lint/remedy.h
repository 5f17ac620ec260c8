// How is it fixed, in the words of that engine or router?
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/lint/linter.h"
#include "diagnose/lint/plan.h"

namespace fathom {

// A fix, and the edits that make it; none where the files leave no safe way.
struct Remedy {
  Fix fix;
  std::vector<TextEdit> edits;
};

// Whether the first remedy may be carried out without a person's decision.
enum class Safety : uint8_t { kSafe, kDecide };

// A finding with its remedies, the best first, each with its diff. Files of more than kMaxDiffed
// bytes get none: there may be a thousand findings in them.
constexpr size_t kMaxDiffed = size_t{256} << 10;
LintFinding WithRemedies(const Plan& plan, Finding finding, std::vector<Remedy> remedies,
                         Safety safety = Safety::kSafe);

// A program as sentences call it: "Frontend", "container engine of Deployment ml/vllm", and "vLLM
// (line 3)" where it has no name but its place.
std::string Called(const Program& program);
// "vLLM", "SGLang", "TensorRT-LLM"; "the engine" where it is not known.
std::string_view Brand(EngineKind engine);
// What the engine calls its block size: "--block-size".
std::string_view BlockSizeSetting(EngineKind engine);
// What it is where nothing is set and nothing unusual decides.
std::optional<uint32_t> UsualBlockSize(EngineKind engine);

// Blocks of `size` tokens in that engine, or for that router.
Remedy SetBlockSize(const Plan& plan, const PlannedEngine& engine, uint32_t size);
Remedy SetBlockSize(const Plan& plan, const PlannedRouter& router, uint32_t size,
                    std::string_view comment);

// A setting that has two names: as a variable of the environment, or as a flag where that cannot be
// written. The fix has the name and nothing else yet.
Remedy SetEither(const Plan& plan, const Program& program, std::string_view variable,
                 std::string_view flag, std::string_view value, std::string_view comment);

// Nothing where it cannot be edited.
std::vector<TextEdit> Rewrite(const Plan& plan, const Written& written, std::string_view value);
std::vector<TextEdit> AddFlag(const Plan& plan, const Program& program, std::string_view name,
                              std::string_view value);
std::vector<TextEdit> AddVariable(const Plan& plan, const Program& program, std::string_view name,
                                  std::string_view value, std::string_view comment);
std::vector<TextEdit> AddKey(const Plan& plan, const Program& program, std::string_view dotted,
                             std::string_view value, std::string_view comment);

// "--block-size 32 (engine.yaml:7)", or "16 by default".
template <class T>
std::string Origin(const Setting<T>& setting) {
  return setting.written ? setting.written->name + ", " + ToText(setting.written->place)
                         : std::string("by default");
}

// Where the setting is written, else where the program is.
template <class T>
FilePlace PlaceOf(const Setting<T>& setting, const Program& program) {
  return setting.written ? setting.written->place : program.place;
}

}  // namespace fathom
