#include "text/jinja/strftime.h"

#include <ctime>

namespace fathom {

Result<std::string> FormatTime(std::string_view format, int64_t seconds) {
  constexpr size_t kLongest = 4096;
  const auto moment = static_cast<time_t>(seconds);
  tm calendar{};
  if (gmtime_r(&moment, &calendar) == nullptr) return Fail(Blame::kCaller, "a time out of range");
  // An empty result means that it did not fit, unless there is a character that is always there.
  const std::string marked = std::string(format) + '.';
  std::string out(kLongest, '\0');
  const size_t length = strftime(out.data(), out.size(), marked.c_str(), &calendar);
  if (length == 0 || format.find('\0') != std::string_view::npos) {
    return Fail(Blame::kCaller, "a time format that is too long");
  }
  out.resize(length - 1);
  return out;
}

}  // namespace fathom
