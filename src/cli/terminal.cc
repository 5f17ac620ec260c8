#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace fathom {
namespace {

// 0 where there is none, or none that is a number.
size_t ColumnsOfEnvironment() {
  const char* const variable = std::getenv("COLUMNS");
  const std::string_view text = variable == nullptr ? "" : variable;
  size_t columns = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), columns);
  return problem == std::errc() && end == text.data() + text.size() ? columns : 0;
}

size_t ColumnsOfOutput() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

size_t TerminalColumns() {
  size_t columns = ColumnsOfEnvironment();
  if (columns == 0) columns = ColumnsOfOutput();
  return columns == 0 ? kUsualColumns : std::clamp<size_t>(columns, 40, 140);
}

}  // namespace fathom
