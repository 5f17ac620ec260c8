// fathom docs: which pages does the documentation have, and what do they say?
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/docs_links.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/embedded_pages.h"
#include "cli/page_shelf.h"
#include "config/help.h"
#include "config/sources.h"
#include "metrics/metrics_reference.h"

namespace fathom {
namespace {

struct Page {
  std::string_view name;  // empty: not listed
  std::string_view path;
  std::string text;
};

// For contributors, or a file that a page links to.
bool IsListed(std::string_view path) {
  return path.ends_with(".md") && !path.starts_with("../") && !path.starts_with("design/") &&
         path != "ARCHITECTURE.md";
}

// Those that are generated from the program's tables, and those in files.
std::vector<Page> AllPages() {
  std::vector<Page> pages = {{"configuration", "configuration.md", ConfigurationPage()},
                             {"metrics", "metrics.md", MetricsReference()}};
  for (const EmbeddedPage& page : EmbeddedPages()) {
    std::string text;
    for (const std::string_view piece : page.pieces) text += piece;
    pages.push_back({IsListed(page.path) ? PageName(page.path) : std::string_view(), page.path,
                     std::move(text)});
  }
  std::ranges::sort(pages, {}, [](const Page& page) { return std::pair(page.name, page.path); });
  return pages;
}

PageShelf ShelfOf(const std::vector<Page>& pages) {
  std::vector<ShelvedPage> shelved;
  for (const Page& page : pages) shelved.push_back({page.name, page.path});
  return PageShelf(std::move(shelved));
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
    if (!page.name.empty()) fmt::print("{:<{}}  {}\n", page.name, widest, TitleOf(page.text));
  }
  return kExitFine;
}

int NoSuchPage(std::string_view name, const std::vector<Page>& pages) {
  std::vector<std::string_view> names;
  for (const Page& page : pages) {
    if (!page.name.empty()) names.push_back(page.name);
  }
  const auto near = Nearest(name, names);
  fmt::print(stderr, "fathom: docs: no such page '{}'; {}\n", name,
             near ? fmt::format("did you mean '{}'?", *near) : "'fathom docs' lists them");
  return kExitUsage;
}

int PrintPage(std::string_view wanted, std::string_view docs_url, const std::vector<Page>& pages) {
  const PageShelf shelf = ShelfOf(pages);
  if (const auto found = shelf.Find(wanted)) {
    const Page& page = pages[*found];
    const bool links = !docs_url.empty() && page.path.ends_with(".md");
    Print(links ? WithLinksBelow(docs_url, page.path, page.text) : page.text);
    return kExitFine;
  }
  const std::vector<std::string_view> files = shelf.FolderAt(wanted);
  if (files.empty()) return NoSuchPage(wanted, pages);
  for (const std::string_view file : files) fmt::print("{}\n", file);
  return kExitFine;
}

struct Wish {
  std::string_view page;
  std::string_view docs_url;
};

// Nothing: the arguments are not understood.
std::optional<Wish> WishOf(std::span<const std::string_view> args) {
  constexpr std::string_view kUrl = "--docs-url";
  const char* const variable = std::getenv("FATHOM_DOCS_URL");
  Wish wish{{}, variable == nullptr ? std::string_view() : std::string_view(variable)};
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i] == kUrl && i + 1 < args.size()) {
      wish.docs_url = args[++i];
    } else if (args[i].starts_with("--docs-url=")) {
      wish.docs_url = args[i].substr(kUrl.size() + 1);
    } else if (args[i].starts_with('-') || !wish.page.empty()) {
      return std::nullopt;
    } else {
      wish.page = args[i];
    }
  }
  return wish;
}

}  // namespace

int RunDocs(std::span<const std::string_view> args) {
  if (AsksForHelp(args)) {
    fmt::print(
        "usage: fathom docs [--docs-url URL] [PAGE]\n\n"
        "Prints a page of the documentation, in Markdown; without a name, lists the pages. PAGE is "
        "a name, or\nwhat a link of a page leads to (../deploy/kubernetes/fathom.yaml). With a URL "
        "(or FATHOM_DOCS_URL),\nlinks are printed as URLs below it.\n");
    return kExitFine;
  }
  const auto wish = WishOf(args);
  if (!wish) {
    fmt::print(stderr, "fathom: docs: prints one page; 'fathom docs' lists them\n");
    return kExitUsage;
  }
  const std::vector<Page> pages = AllPages();
  return wish->page.empty() ? ListPages(pages) : PrintPage(wish->page, wish->docs_url, pages);
}

}  // namespace fathom
