// What does this log say, however long it is?
//
// Reads logs of Fathom and Dynamo (text and JSON, old and new forms) and the lines of engines that
// tell of their caches, with or without the prefixes of kubectl, docker, compose and journald.
//
//   LogDigest digest;
//   while (Read(chunk)) digest.Feed(chunk);
//   digest.End();
//   Show(digest.facts());
//
// Threads  One.
// Memory   Less than kMostBytes, whatever comes. Of a line, kMaxLine bytes are read.
// Errors   None: what is not understood is counted. How the bytes are cut into pieces changes
//          nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "diagnose/logs/fathom_lines.h"
#include "diagnose/logs/log_facts.h"
#include "diagnose/logs/log_line.h"

namespace fathom {

class LogDigest {
 public:
  static constexpr size_t kMaxLine = 16 << 10;
  static constexpr size_t kMostBytes = 1 << 20;

  void Feed(std::string_view bytes);
  // The last line need not end with a newline.
  void End();

  const LogFacts& facts() const { return facts_; }
  // What it holds, about.
  size_t MemoryBytes() const;

 private:
  // How many lines of the last minutes; older ones make no peak any more.
  struct Minutes {
    static constexpr size_t kKept = 16;
    std::array<std::pair<int64_t, uint64_t>, kKept> counts{};
    uint64_t Add(LogTime time);
  };

  void Keep(std::string_view part);
  void TakeLine(std::string_view line, uint64_t length);
  void TakeMarked(std::string_view line);
  void TakeKnown(LogKind kind, std::string_view said);
  bool TakeKind(LogKind kind, std::string_view said);
  std::optional<LogKind> Diagnostic(bool has_path) const;
  void Count(LogKind kind, std::optional<LogTime> time);
  void Stamp(std::optional<LogTime> time);

  LogFacts facts_;
  FathomLines fathom_;
  LogLine line_;
  std::array<Minutes, kLogKinds> minutes_;
  std::string kept_;     // of a line whose end has not come, no more than kMaxLine
  uint64_t length_ = 0;  // of all of it
};

}  // namespace fathom
