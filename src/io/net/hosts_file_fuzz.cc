#include <cstdlib>

#include "io/net/host_name.h"
#include "io/net/hosts_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto table = fathom::HostsFile::Parse(text);
  for (const auto& [name, addresses] : table) {
    if (!fathom::IsHostName(name) || addresses.empty()) std::abort();
    if (addresses.size() > fathom::HostsFile::kMaxAddresses) std::abort();
  }
  // Lines are independent: what the first half gives at a line's end is in the whole.
  const size_t cut = text.find('\n', size / 2);
  if (cut == text.npos) return 0;
  for (const auto& [name, addresses] : fathom::HostsFile::Parse(text.substr(0, cut))) {
    if (!table.contains(name)) std::abort();
  }
  return 0;
}
