// What is wrong, how do we know, and what would mend it?
//
// The one shape of everything that the doctor and the linter report. Ids are words that stay:
// scripts and runbook pages go by them (catalogue.h has them all).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/findings/catalogue.h"

namespace fathom {

// Where it is written. A line of 0: the file as a whole. Empty: in no file.
struct FilePlace {
  std::string file;
  uint32_t line = 0;

  bool operator==(const FilePlace&) const = default;
  auto operator<=>(const FilePlace&) const = default;
};

// "agg_router.yaml:12", "agg_router.yaml"; empty for no place.
std::string ToText(const FilePlace& place);

// One way to mend it, for a person to do.
struct Fix {
  std::string what;     // one sentence in the imperative, complete without the rest
  std::string setting;  // to paste, in the words of that engine or router; may have several lines
  std::string diff;     // unified, against the file that was read
  std::string cost;     // what it costs to do, and what it takes away
  std::string verify;   // how to see afterwards that it helped

  bool operator==(const Fix&) const = default;
};

struct Finding {
  FindingId id{};
  Severity severity = Severity::kWarning;
  std::string subject;                // who has it: a worker's URL, a program of a manifest
  std::string message;                // one sentence: what is wrong, with its numbers
  std::string why;                    // one or two: what that does to the fleet
  std::vector<std::string> evidence;  // one sentence each, with where it comes from
  FilePlace place;
  std::vector<Fix> fixes;  // the best first
  // Share of what cache-aware routing could save that is lost to this, 0 to 1; what findings of one
  // severity are ranked by.
  double gain = 0;
  std::string gain_basis;  // how that was reckoned, one line; empty: it was not

  bool operator==(const Finding&) const = default;
};

// The same without what must not be passed on: values of keys and tokens in the settings to paste.
// Diffs have none (manifest/edit.h).
Finding FitToPassOn(Finding finding);

// A finding with the catalogue's severity.
Finding MakeFinding(FindingId id, std::string subject, std::string message);

// By severity, then gain, then the order of the catalogue, then place, then subject and message.
void SortFindings(std::vector<Finding>& findings);

}  // namespace fathom
