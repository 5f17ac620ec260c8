// Which program is it, by its command or its image?
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/manifest/command_line.h"
#include "diagnose/manifest/program.h"

namespace fathom {

struct Identity {
  ProgramRole role = ProgramRole::kOther;
  EngineKind engine = EngineKind::kUnknown;  // of a runtime image: the one that it is made for
  bool dynamo = false;

  bool operator==(const Identity&) const = default;
};

// vllm/vllm-openai:v0.9.0, nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime:1.0.0. A runtime image of
// Dynamo has no role: its command decides.
Identity IdentityOfImage(std::string_view image);

// "0.9.0" of vllm/vllm-openai:v0.9.0-cu12: the engine's version, or Dynamo's of an image of Dynamo.
// Empty for images of others, whose tags may count anything, and for tags that read as no version.
std::string VersionOf(std::string_view image);
// Empty where it is not known: the tag of a Dynamo image says nothing of the engine in it.
std::string_view EngineVersionOf(const Program& program);

// "vllm", "sglang", "trtllm" as Dynamo writes them.
EngineKind EngineNamed(std::string_view name);

// A command that starts one of the programs that we know.
struct Launch {
  Identity identity;
  size_t arguments = 0;              // index of its first argument
  std::string image;                 // docker run IMAGE
  std::vector<ShellWord> variables;  // docker run -e NAME=value
};
std::optional<Launch> LaunchOf(std::span<const ShellWord> words);

// Which engine has a flag of that name? Only flags that one engine alone has.
EngineKind EngineWithFlag(std::string_view flag);

}  // namespace fathom
