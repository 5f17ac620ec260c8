// What happened? One record per event, for people (text) or machines (JSON).
//
// Threads  Any. The caller formats a record. With a LogWriter it hands the record over and does not
//          wait; with a descriptor it writes the record itself.
// Privacy  Never pass prompt text or credentials. URLs of workers are allowed: logs are for the
//          operator.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/docs_links.h"
#include "base/log_writer.h"

namespace fathom {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarn, kError, kOff };
enum class LogFormat : uint8_t { kText, kJson };

std::optional<LogLevel> ParseLogLevel(std::string_view name);

// One key=value of a record. The key is a literal; the value is read before the call returns.
struct LogField {
  using Value = std::variant<std::string_view, int64_t, uint64_t, double, bool>;

  LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
  LogField(std::string_view k, const std::string& v) : key(k), value(std::string_view(v)) {}
  LogField(std::string_view k, const char* v) : key(k), value(std::string_view(v)) {}
  LogField(std::string_view k, bool v) : key(k), value(v) {}
  LogField(std::string_view k, double v) : key(k), value(v) {}
  template <std::signed_integral T>
  LogField(std::string_view k, T v) : key(k), value(static_cast<int64_t>(v)) {}
  template <std::unsigned_integral T>
  LogField(std::string_view k, T v) : key(k), value(static_cast<uint64_t>(v)) {}

  std::string_view key;
  Value value;
};

class Log {
 public:
  using Fields = std::initializer_list<LogField>;

  // `docs` is where records, and the pages that repeat them, send their readers.
  explicit Log(int fd, LogLevel level = LogLevel::kInfo, LogFormat format = LogFormat::kText,
               DocsLinks docs = DocsLinks())
      : fd_(fd), level_(level), format_(format), docs_(std::move(docs)) {}
  explicit Log(LogWriter& writer, LogLevel level = LogLevel::kInfo,
               LogFormat format = LogFormat::kText, DocsLinks docs = DocsLinks())
      : writer_(&writer), level_(level), format_(format), docs_(std::move(docs)) {}

  bool Enabled(LogLevel level) const { return level >= level_; }
  const DocsLinks& docs() const { return docs_; }
  // Records that could not be written.
  uint64_t dropped() const { return writer_ == nullptr ? 0 : writer_->dropped(); }

  // Before the process ends without destructors: waits until all is written, at most `patience`.
  void End(Duration patience) {
    if (writer_ != nullptr) writer_->End(patience);
  }

  void Debug(std::string_view message, Fields fields = {}) {
    Write(LogLevel::kDebug, message, fields);
  }
  void Info(std::string_view message, Fields fields = {}) {
    Write(LogLevel::kInfo, message, fields);
  }
  void Warn(std::string_view message, Fields fields = {}) {
    Write(LogLevel::kWarn, message, fields);
  }
  void Error(std::string_view message, Fields fields = {}) {
    Write(LogLevel::kError, message, fields);
  }

 private:
  void Write(LogLevel level, std::string_view message, Fields fields);

  const int fd_ = -1;
  LogWriter* const writer_ = nullptr;
  const LogLevel level_;
  const LogFormat format_;
  const DocsLinks docs_;
};

// How a log reports that its writer has dropped records, with the newline.
std::string LostRecord(LogFormat format, uint64_t count);

// The record as it is written, without the newline. Exposed for tests.
std::string FormatRecord(LogFormat format, std::string_view timestamp, LogLevel level,
                         std::string_view message, Log::Fields fields);

}  // namespace fathom
