#include "base/log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>

#include "base/text.h"
#include "base/wall_time.h"

namespace fathom {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"DEBUG", "INFO", "WARN", "ERROR"};
constexpr std::array<std::string_view, 5> kOptions = {"debug", "info", "warn", "error", "off"};

bool NeedsQuotes(std::string_view value) {
  if (value.empty()) return true;
  for (const char c : value) {
    // Of what is not ASCII, some must be escaped.
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte >= 0x7f || c == '"' || c == '=' || c == '\\') return true;
  }
  return false;
}

struct TextValue {
  std::string& out;
  void operator()(std::string_view v) const {
    if (NeedsQuotes(v)) {
      AppendJsonString(out, v);
    } else {
      out += v;
    }
  }
  void operator()(double v) const { fmt::format_to(std::back_inserter(out), "{:.6g}", v); }
  void operator()(auto v) const { fmt::format_to(std::back_inserter(out), "{}", v); }
};

struct JsonValue {
  std::string& out;
  void operator()(std::string_view v) const { AppendJsonString(out, v); }
  void operator()(double v) const {
    out += std::isfinite(v) ? fmt::format("{:.6g}", v) : "null";  // JSON has no infinity
  }
  void operator()(auto v) const { fmt::format_to(std::back_inserter(out), "{}", v); }
};

}  // namespace

std::optional<LogLevel> ParseLogLevel(std::string_view name) {
  for (size_t i = 0; i < kOptions.size(); ++i) {
    if (name == kOptions[i]) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

std::string FormatRecord(LogFormat format, std::string_view timestamp, LogLevel level,
                         std::string_view message, Log::Fields fields) {
  const std::string_view name = kNames[static_cast<size_t>(level)];
  std::string out;
  out.reserve(96 + message.size());
  if (format == LogFormat::kText) {
    // A multi-line message keeps its lines in text format, so that operators recognise it.
    fmt::format_to(std::back_inserter(out), "{} {:<5} ", timestamp, name);
    AppendHarmlessLines(out, message);
    for (const LogField& field : fields) {
      out.append(" ").append(field.key).append("=");
      std::visit(TextValue{out}, field.value);
    }
    return out;
  }
  fmt::format_to(std::back_inserter(out), R"({{"ts":"{}","level":"{}","msg":)", timestamp, name);
  AppendJsonString(out, message);
  for (const LogField& field : fields) {
    out += ',';
    AppendJsonString(out, field.key);
    out += ':';
    std::visit(JsonValue{out}, field.value);
  }
  out += '}';
  return out;
}

std::string LostRecord(LogFormat format, uint64_t count) {
  return FormatRecord(format, WallTimeNow(), LogLevel::kWarn,
                      "Log records were dropped: the log was not read fast enough",
                      {{"records", count}}) +
         '\n';
}

void Log::Write(LogLevel level, std::string_view message, Fields fields) {
  if (!Enabled(level)) return;
  std::string record = FormatRecord(format_, WallTimeNow(), level, message, fields);
  record += '\n';
  if (writer_ != nullptr) {
    const bool important = level >= LogLevel::kWarn;
    return writer_->Take(record,
                         important ? LogWriter::Rank::kImportant : LogWriter::Rank::kOrdinary);
  }
  std::string_view rest = record;
  while (!rest.empty()) {
    const ssize_t n = ::write(fd_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // the log has no other place to report this
    rest.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace fathom
