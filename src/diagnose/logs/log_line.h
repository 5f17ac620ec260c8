// What does one line of a log say, whoever wrote it and whatever carried it here?
//
// Text with key=value fields, or a JSON object with a message; colours are taken out, and so are
// docker's and journald's objects around it. Prefixes of kubectl and compose stay in front of a
// text's message.
//
// Memory  A few times the line. Views are good until the next Read(), and while the line is there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/logs/log_time.h"

namespace fathom {

class LogLine {
 public:
  void Read(std::string_view line);

  std::string_view message() const { return message_; }
  std::optional<LogTime> time() const { return time_; }

  // The field of that name, from the JSON object or from key=value in the message. Of a text no
  // more than `most` bytes, empty where there is none.
  std::string Text(std::string_view key, size_t most) const;
  std::optional<uint64_t> Number(std::string_view key) const;
  std::optional<double> Real(std::string_view key) const;

  // The member of the JSON object, as it stands there; nothing in a text.
  std::optional<std::string_view> Member(std::string_view key) const;

  size_t MemoryBytes() const;

 private:
  enum class Layer : uint8_t { kOuter, kCarried };

  void ReadText(std::string_view text);
  bool ReadObject(std::string_view text, Layer layer);
  void ReadCarried(std::string_view line);
  bool Gather(std::string_view object, bool nested);
  std::optional<LogTime> Stamp() const;
  bool TakeText(std::string_view key, std::string& out) const;
  std::optional<std::string_view> Find(std::string_view key) const;

  // As they stand in the line.
  std::vector<std::pair<std::string_view, std::string_view>> members_;
  std::string plain_;    // the line without colours
  std::string carried_;  // the line that docker's or journald's object holds
  std::string said_;     // the message of a JSON object
  std::string_view message_;
  std::optional<LogTime> time_;
};

// The number that follows the label: 470768 in "GPU KV cache size: 470,768 tokens".
std::optional<double> RealAfter(std::string_view text, std::string_view label);
std::optional<uint64_t> NumberAfter(std::string_view text, std::string_view label);
// A block size: 0 where none follows, or one that cannot be.
uint32_t SizeAfter(std::string_view text, std::string_view label);

}  // namespace fathom
