#include <cstdint>
#include <string>

#include "base/check.h"
#include "diagnose/manifest/deployment_reader.h"
#include "diagnose/manifest/edit.h"
#include "diagnose/manifest/engine_settings.h"

namespace fathom {
namespace {

void CheckSettings(const SourceFile& file, const std::vector<Written>& settings) {
  for (const Written& written : settings) {
    CHECK(written.place.file == file.name);
    if (written.span) CHECK(written.span->offset + written.span->length <= file.text.size());
  }
}

// What may be changed can be changed, whatever that makes of the file.
void Change(const SourceFile& file, const Program& program) {
  std::vector<TextEdit> edits;
  for (const auto& edit : {SetVariable(file, program, "DYN_KV_CACHE_BLOCK_SIZE", "32", "why"),
                           SetFlag(file, program, "--block-size", "32"),
                           SetKey(file, program, "kv_cache_config.tokens_per_block", "32", "")}) {
    if (edit) edits.push_back(*edit);
  }
  const std::string after = Apply(file, edits);
  CHECK(UnifiedDiff(file, after).empty() == (after == file.text));
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // The first byte says which language it is.
  constexpr const char* kNames[] = {"x.yaml", "x.sh", "x.md", "x.toml", "x"};
  const fathom::SourceFile file{kNames[data[0] % std::size(kNames)],
                                std::string(reinterpret_cast<const char*>(data) + 1, size - 1)};
  const fathom::ReadDeployment read = fathom::ReadDeploymentFiles({&file, 1});
  for (const fathom::Program& program : read.deployment.programs) {
    CHECK(program.role != fathom::ProgramRole::kOther);
    fathom::CheckSettings(file, program.flags);
    fathom::CheckSettings(file, program.variables);
    fathom::CheckSettings(file, program.keys);
    (void)fathom::EngineSettingsOf(program);
    (void)fathom::RouterSettingsOf(program);
    fathom::Change(file, program);
  }
  return 0;
}
