// Models with public dimensions, for the tests of sizing.
#pragma once

#include <string>
#include <string_view>

#include "base/check.h"
#include "base/file.h"
#include "diagnose/sizing/what_if.h"

namespace fathom {

inline std::string SizingData(std::string_view name) {
  auto text = ReadFile(std::string("tests/data/sizing/").append(name));
  CHECK(text.has_value());
  return *std::move(text);
}

inline ModelShape ShapeOf(std::string_view name) {
  auto shape = ParseModelShape(SizingData(std::string(name) + ".json"));
  CHECK(shape.has_value());
  return *std::move(shape);
}

inline Gpu GpuOf(std::string_view name) {
  auto gpu = ParseGpu(name);
  CHECK(gpu.has_value());
  return *std::move(gpu);
}

inline KvLayout LayoutOf(EngineKind engine, uint32_t tensor) {
  KvLayout layout{.engine = engine, .parallel = {}};
  layout.parallel.tensor = tensor;
  return layout;
}

}  // namespace fathom
