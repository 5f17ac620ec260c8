// fathom docs: the pages that are made from what the program knows of itself.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include "app/command.h"
#include "config/help.h"
#include "config/sources.h"
#include "metrics/metrics_page.h"

namespace fathom {
namespace {

struct Page {
  std::string_view name;
  std::string (*text)();
};

constexpr std::array<Page, 2> kPages = {
    {{"configuration", ConfigurationPage}, {"metrics", MetricsPage}}};

}  // namespace

int RunDocs(std::span<const std::string_view> args) {
  if (AsksForHelp(args)) {
    fmt::print("usage: fathom docs configuration|metrics\n");
    return kExitFine;
  }
  const auto* const page =
      args.size() == 1 ? std::ranges::find(kPages, args[0], &Page::name) : kPages.end();
  if (page == kPages.end()) {
    fmt::print(stderr, "fathom: docs: the page to print is 'configuration' or 'metrics'\n");
    return kExitUsage;
  }
  fmt::print("{}", page->text());
  return kExitFine;
}

}  // namespace fathom
