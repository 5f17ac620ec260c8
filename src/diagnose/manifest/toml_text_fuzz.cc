#include <cstdint>
#include <string>

#include "base/check.h"
#include "diagnose/manifest/toml_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fathom::SourceFile file{"x.toml", std::string(reinterpret_cast<const char*>(data), size)};
  const auto entries = fathom::ReadToml(fathom::Passage(file));
  if (!entries) {
    CHECK(entries.error().what.starts_with("x.toml:"));
    return 0;
  }
  for (const fathom::Written& entry : *entries) {
    CHECK(entry.name.size() <= fathom::kMaxTomlName);
    CHECK(entry.span.has_value() && entry.span->length > 0);
    CHECK(entry.span->offset + entry.span->length <= size);
  }
  return 0;
}
