// fathom docs: which pages does the documentation have, and what do they say?
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
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
#include "cli/renamed_names.h"
#include "config/help.h"
#include "config/sources.h"
#include "metrics/metrics_reference.h"

namespace fathom {
namespace {

struct Page {
  std::string_view name;  // empty: not listed
  std::string path;
  std::function<std::string()> text;
};

// For contributors, or a file that a page links to.
bool IsListed(std::string_view path) {
  return path.ends_with(".md") && !path.starts_with("../") && !path.starts_with("design/") &&
         path != "ARCHITECTURE.md";
}

std::string TextOf(const EmbeddedPage& page) {
  std::string text;
  for (const std::string_view piece : page.pieces) text += piece;
  return text;
}

// Those that are generated from the program's tables, and those in files. Manual pages are for
// packages, which call them by their file's name.
std::vector<Page> AllPages() {
  std::vector<Page> pages = {
      {"configuration", "configuration.md", ConfigurationPage},
      {"metrics", "metrics.md", MetricsReference},
      {"renamed", "renamed.md", [] { return RenamedNamesPage(AllRenamedNames()); }},
      {"", "fathom.1", OverviewManual}};
  for (const Command command : kCommands) {
    pages.push_back(
        {"", fmt::format("fathom-{}.1", NameOf(command)), [command] { return ManualOf(command); }});
  }
  for (const EmbeddedPage& page : EmbeddedPages()) {
    pages.push_back({IsListed(page.path) ? PageName(page.path) : std::string_view(),
                     std::string(page.path), [&page] { return TextOf(page); }});
  }
  std::ranges::sort(pages, {}, [](const Page& page) { return std::pair(page.name, page.path); });
  return pages;
}

PageShelf ShelfOf(const std::vector<Page>& pages) {
  std::vector<ShelvedPage> shelved;
  for (const Page& page : pages) shelved.push_back({page.name, page.path});
  return PageShelf(std::move(shelved), RenamedPages());
}

// The heading of the page, which is its first line.
std::string TitleOf(const std::string& text) {
  const std::string line = text.substr(0, text.find('\n'));
  return line.starts_with("# ") ? line.substr(2) : std::string();
}

void Print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

int ListPages(const std::vector<Page>& pages) {
  size_t widest = 0;
  for (const Page& page : pages) widest = std::max(widest, page.name.size());
  for (const Page& page : pages) {
    if (!page.name.empty()) fmt::print("{:<{}}  {}\n", page.name, widest, TitleOf(page.text()));
  }
  return kExitFine;
}

int NoSuchPage(std::string_view name) {
  const auto near = Nearest(name, PageNames());
  fmt::print(stderr, "fathom: docs: no such page '{}'; {}\n", name,
             near ? fmt::format("did you mean '{}'?", *near) : "'fathom docs' lists them");
  return kExitUsage;
}

// Not on standard output, which has the page alone.
void NoteFormerPage(const Renamed& renaming) {
  fmt::print(stderr, "fathom: docs: {} is now {}; Fathom {} does not know the former name\n",
             renaming.former, renaming.now, RemovedIn(renaming.release));
}

int PrintPage(std::string_view wanted, std::string_view docs_url, const std::vector<Page>& pages) {
  const PageShelf shelf = ShelfOf(pages);
  if (const auto found = shelf.Find(wanted)) {
    const Page& page = pages[*found];
    if (const Renamed* const renaming = shelf.RenamingOf(wanted)) NoteFormerPage(*renaming);
    const bool links = !docs_url.empty() && page.path.ends_with(".md");
    Print(links ? WithLinksBelow(docs_url, page.path, page.text()) : page.text());
    return kExitFine;
  }
  const std::vector<std::string_view> files = shelf.FolderAt(wanted);
  if (files.empty()) return NoSuchPage(wanted);
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

std::vector<std::string_view> PageNames() {
  std::vector<std::string_view> names;
  for (const Page& page : AllPages()) {
    if (!page.name.empty()) names.push_back(page.name);
  }
  return names;
}

int RunDocs(std::span<const std::string_view> args) {
  if (AsksForHelp(args)) {
    fmt::print(
        "usage: fathom docs [--docs-url URL] [PAGE]\n\n"
        "Prints a page of the documentation, in Markdown; without a name, lists the pages. PAGE is "
        "a name, or\nwhat a link of a page leads to (../deploy/kubernetes/fathom.yaml). With a URL "
        "(or FATHOM_DOCS_URL),\nlinks are printed as URLs below it.\n\n"
        "fathom.1 and fathom-COMMAND.1 are manual pages: fathom docs fathom-serve.1 | man -l -\n");
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
