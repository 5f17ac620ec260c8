// What did the investigation see, part by part?
//
// The doctor fills it; report_text, report_markdown, report_html and report_json show it. It holds
// finished words and numbers: no view computes anything.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/docs_links.h"
#include "diagnose/findings/finding.h"

namespace fathom {

enum class Tone : uint8_t { kPlain, kGood, kDoubtful, kBad, kFaint };

struct Cell {
  std::string text;
  Tone tone = Tone::kPlain;

  bool operator==(const Cell&) const = default;
};

struct Table {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;  // as many cells as columns
};

// Drawn in the html page; the other views print its caption. `y` values of one bar chart are
// stacked in the order of the series.
struct Plot {
  enum class Kind : uint8_t { kBars, kLines };
  struct Series {
    std::string name;
    std::vector<double> x;  // of lines; empty for bars
    std::vector<double> y;
    Tone tone = Tone::kPlain;
  };
  Kind kind = Kind::kBars;
  std::string title;
  std::string x_label;
  std::string y_label;                  // with its unit
  std::vector<std::string> categories;  // of bars
  std::vector<Series> series;
  std::string caption;  // what it shows, one sentence with the number that matters
};

struct Section {
  Part part{};
  std::vector<std::string> lines;  // what was seen, one sentence each
  std::vector<Table> tables;
  std::vector<Plot> plots;
  std::vector<std::string> missing;  // what could not be seen, and which option would show it
};

// One thing that was looked at, or was to be.
struct LookedAt {
  std::string what;  // "router http://10.0.0.1:8000", "logs frontend.log"
  bool seen = false;
  std::string outcome;  // "4 workers", "1,204,113 lines", "connection refused"
};

// A request that the doctor has sent, so that everybody can see that it changed nothing.
struct SentRequest {
  std::string method;
  std::string target;  // "http://10.0.0.1:8000/health"
  uint64_t times = 1;
};

struct Report {
  std::string version;  // of fathom
  std::string time;     // when it looked, RFC 3339
  std::string verdict;  // one sentence
  std::vector<LookedAt> looked_at;
  std::vector<Section> sections;  // one per part, in order
  std::vector<Finding> findings;  // by rank
  std::vector<SentRequest> sent;
  DocsLinks docs = DocsLinks();  // how findings name their pages
};

}  // namespace fathom
