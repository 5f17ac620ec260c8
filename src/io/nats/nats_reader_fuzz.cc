// Any bytes of a server, cut anywhere, give the same steps, and no text is longer than its bound.
#include <string>
#include <string_view>

#include "base/check.h"
#include "io/nats/nats_hello.h"
#include "io/nats/nats_reader.h"

namespace fathom {
namespace {

constexpr size_t kFuzzLongest = 1000;

// What the bytes amount to, as text.
std::string Said(std::string_view bytes, size_t piece) {
  NatsReader reader(kFuzzLongest);
  std::string said;
  while (!bytes.empty()) {
    const std::string taken(bytes.substr(0, piece));  // so that what is kept of it is noticed
    bytes.remove_prefix(taken.size());
    std::string_view in = taken;
    for (;;) {
      const NatsReader::Step step = reader.Take(in);
      if (step == NatsReader::Step::kMore) break;
      const std::string_view text = reader.text();
      CHECK(text.size() <=
            (step == NatsReader::Step::kMessage ? kFuzzLongest : NatsReader::kLongestInfo));
      said += static_cast<char>('0' + static_cast<int>(step));
      said += text;
      said += '|';
      if (step == NatsReader::Step::kInfo) (void)NatsInfo::Parse(text);
      if (step == NatsReader::Step::kFault) return said;
    }
    CHECK(in.empty());
  }
  return said;
}

}  // namespace
}  // namespace fathom

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = fathom::Said(bytes, size + 1);
  for (const size_t piece : {1, 3, 64}) CHECK(fathom::Said(bytes, piece) == whole);
  return 0;
}
