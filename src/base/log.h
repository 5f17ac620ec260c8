// What happened, one record per event, for people (text) or machines (JSON).
//
// Threads  Any. A record is formatted by its caller and leaves in one write(2), so records of
//          different threads never interleave and nothing is lost in a buffer when the process
//          dies.
// Privacy  Never pass prompt text or credentials. URLs of workers are fine: logs are the
// operator's.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

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

  explicit Log(int fd, LogLevel level = LogLevel::kInfo, LogFormat format = LogFormat::kText)
      : fd_(fd), level_(level), format_(format) {}

  bool Enabled(LogLevel level) const { return level >= level_; }

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

  const int fd_;
  const LogLevel level_;
  const LogFormat format_;
};

// The record as it is written, without the newline. Exposed for tests.
std::string FormatRecord(LogFormat format, std::string_view timestamp, LogLevel level,
                         std::string_view message, Log::Fields fields);

}  // namespace fathom
