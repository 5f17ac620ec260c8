// What does Fathom's own log say of ranks and models: which are doubted and why, whose block sizes
// differ, whose prompts are not read?
//
// In text a record may have several lines, of which only the last names its worker; in JSON it is
// one object.
//
// Memory  One unfinished record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "diagnose/logs/log_facts.h"
#include "diagnose/logs/log_line.h"

namespace fathom {

class FathomLines {
 public:
  struct Place {
    uint64_t number = 0;  // of the line
    std::optional<LogTime> time;
  };

  // `said` is the message from its phrase on. False: on a second look it does not say that.
  bool Take(LogKind kind, std::string_view said, const LogLine& line, Place place, LogFacts& facts);

  // A record may go on in the next line, which has no phrase.
  bool open() const { return lines_left_ > 0; }
  void Continue(const LogLine& line, Place place, LogFacts& facts);
  // The record that is open gets no further lines.
  void End(LogFacts& facts);

 private:
  bool Open(LogKind kind, std::string_view said, const LogLine& line, Place place, LogFacts& facts);
  void TakeNext(std::string_view text, const LogLine& line, Place place, LogFacts& facts);
  void TakeMismatch(std::string_view text, const LogLine& line, Place place, LogFacts& facts);
  void TakeClaim(std::string_view text, LogFacts& facts);

  uint32_t lines_left_ = 0;  // that may come between two of the record
  SizeClash clash_;          // what is known of it
  std::string fix_;
};

}  // namespace fathom
