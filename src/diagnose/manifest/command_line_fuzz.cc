#include <cstdint>
#include <string>

#include "base/check.h"
#include "diagnose/manifest/arguments.h"
#include "diagnose/manifest/command_line.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fathom::SourceFile file{"x.sh", std::string(reinterpret_cast<const char*>(data), size)};
  const auto shell = fathom::ReadShell(fathom::Passage(file));
  if (!shell) return 0;
  for (const fathom::SimpleCommand& command : shell->commands) {
    CHECK(command.end <= size);
    for (const fathom::ShellWord& word : command.words) {
      CHECK(word.span.has_value() && word.span->offset + word.span->length <= size);
      CHECK(word.passage.has_value() && word.passage->text() == word.text);
    }
    // A flag's value stands where it says that it does.
    auto flags = fathom::FlagsOf(command.words);
    for (const fathom::Written& flag : flags) {
      if (flag.span) CHECK(flag.span->offset + flag.span->length <= size);
    }
    fathom::ExpandAll(flags, flags);
  }
  return 0;
}
