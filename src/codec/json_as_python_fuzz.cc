// Two readers agree: what is read by itself is read the same beside a number that only one of them
// takes.
#include <string>

#include "base/check.h"
#include "codec/json_as_python.h"

namespace fathom {
namespace {

std::string Written(const Json& json) {
  std::string out;
  json.WriteTo(out);
  return out;
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fathom;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto alone = JsonAsPython(text);
  const auto beside = JsonAsPython("[" + text + "\n,NaN]");
  if (!alone) return 0;
  if (!beside) {
    CHECK(beside.error() == PythonJsonFault::kNotSupported);  // it is one level deeper
    return 0;
  }
  CHECK(beside->array() != nullptr && beside->array()->size() == 2);
  CHECK(Written(beside->array()->front()) == Written(*alone));
  return 0;
}
