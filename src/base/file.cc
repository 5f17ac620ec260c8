#include "base/file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace fathom {

Result<std::string> ReadFile(const std::string& path) {
  const auto close = [](FILE* file) { std::fclose(file); };
  const std::unique_ptr<FILE, decltype(close)> file(std::fopen(path.c_str(), "rb"), close);
  if (!file) return Fail(Blame::kCaller, "{}", std::strerror(errno));
  std::string content;
  char buffer[65536];
  while (const size_t count = std::fread(buffer, 1, sizeof buffer, file.get())) {
    content.append(buffer, count);
    if (content.size() > kMaxFileBytes) {
      return Fail(Blame::kCaller, "has more than {} MiB", kMaxFileBytes >> 20);
    }
  }
  if (std::ferror(file.get())) return Fail(Blame::kCaller, "{}", std::strerror(errno));
  return content;
}

}  // namespace fathom
