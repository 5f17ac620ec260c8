// fathom docs: which pages does the documentation have, and what do they say?
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/docs_links.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/embedded_pages.h"
#include "config/help.h"
#include "config/sources.h"
#include "metrics/metrics_reference.h"

namespace fathom {
namespace {

struct Page {
  std::string_view name;
  std::string text;
};

// Those that are generated from the program's tables, and those in files.
std::vector<Page> AllPages() {
  std::vector<Page> pages = {{"configuration", ConfigurationPage()},
                             {"metrics", MetricsReference()}};
  for (const EmbeddedPage& page : EmbeddedPages()) {
    std::string text;
    for (const std::string_view piece : page.pieces) text += piece;
    pages.push_back({PageName(page.path), std::move(text)});
  }
  std::ranges::sort(pages, {}, &Page::name);
  return pages;
}

// The heading of the page, which is its first line.
std::string_view TitleOf(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return line.starts_with("# ") ? line.substr(2) : std::string_view();
}

void Print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

int ListPages(const std::vector<Page>& pages) {
  size_t widest = 0;
  for (const Page& page : pages) widest = std::max(widest, page.name.size());
  for (const Page& page : pages) {
    fmt::print("{:<{}}  {}\n", page.name, widest, TitleOf(page.text));
  }
  return kExitFine;
}

int NoSuchPage(std::string_view name, const std::vector<Page>& pages) {
  std::vector<std::string_view> names;
  for (const Page& page : pages) names.push_back(page.name);
  const auto near = Nearest(name, names);
  fmt::print(stderr, "fathom: docs: no such page '{}'; {}\n", name,
             near ? fmt::format("did you mean '{}'?", *near) : "'fathom docs' lists them");
  return kExitUsage;
}

}  // namespace

int RunDocs(std::span<const std::string_view> args) {
  if (AsksForHelp(args)) {
    fmt::print(
        "usage: fathom docs [PAGE]\n\n"
        "Prints a page of the documentation, in Markdown; without a name, lists the pages.\n");
    return kExitFine;
  }
  const std::vector<Page> pages = AllPages();
  if (args.empty()) return ListPages(pages);
  if (args.size() > 1) {
    fmt::print(stderr, "fathom: docs: prints one page; 'fathom docs' lists them\n");
    return kExitUsage;
  }
  const auto page = std::ranges::find(pages, args[0], &Page::name);
  if (page == pages.end()) return NoSuchPage(args[0], pages);
  Print(page->text);
  return kExitFine;
}

}  // namespace fathom
