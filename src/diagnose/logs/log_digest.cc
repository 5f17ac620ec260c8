#include "diagnose/logs/log_digest.h"

#include <algorithm>
#include <cstring>

#include "diagnose/logs/complaints.h"
#include "diagnose/logs/engine_lines.h"
#include "diagnose/logs/log_phrases.h"
#include "diagnose/logs/message_front.h"
#include "diagnose/logs/router_lines.h"

namespace fathom {
namespace {

bool IsRouters(LogKind kind) { return kind <= LogKind::kPrefillRouter; }
bool IsFathoms(LogKind kind) { return !IsRouters(kind) && kind <= LogKind::kRemoved; }

// Newer Dynamo says some things in a field of that name, and in the message with other words.
constexpr std::string_view kCode = "diagnostic_code";

void Extend(std::optional<LogTime>& first, std::optional<LogTime>& last, LogTime time) {
  first = first ? std::min(*first, time) : time;
  last = last ? std::max(*last, time) : time;
}

size_t BytesOf(const LoggedRank& rank) { return sizeof(rank) + rank.first.capacity(); }

size_t BytesOf(const TrustRecord& record) {
  return sizeof(record) + record.worker_id.capacity() + record.state.capacity() +
         record.cause.capacity() + record.evidence.capacity() + record.fix.capacity();
}

size_t BytesOf(const UnreadRecord& record) {
  return sizeof(record) + record.unread.capacity() + record.reason.capacity() +
         record.route.capacity() + record.engine.capacity() + record.fix.capacity();
}

}  // namespace

uint64_t LogDigest::Minutes::Add(LogTime time) {
  const int64_t minute = std::chrono::floor<std::chrono::minutes>(time.time_since_epoch()).count();
  auto& [of, count] = counts[static_cast<uint64_t>(minute) % kKept];
  if (minute < of) return 0;
  if (minute > of) count = 0;
  of = minute;
  return ++count;
}

void LogDigest::Feed(std::string_view bytes) {
  facts_.bytes += bytes.size();
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    if (end == std::string_view::npos) return Keep(bytes);
    const std::string_view part = bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    if (length_ == 0) {
      TakeLine(part.substr(0, kMaxLine), part.size());
      continue;
    }
    Keep(part);
    TakeLine(kept_, length_);
    kept_.clear();
    length_ = 0;
  }
}

void LogDigest::End() {
  if (length_ > 0) TakeLine(kept_, length_);
  kept_.clear();
  length_ = 0;
  fathom_.End(facts_);
}

void LogDigest::Keep(std::string_view part) {
  length_ += part.size();
  kept_ += part.substr(0, kMaxLine - kept_.size());
}

void LogDigest::TakeLine(std::string_view line, uint64_t length) {
  ++facts_.lines;
  if (length > line.size()) ++facts_.cut;
  if (std::memchr(line.data(), '\0', line.size()) != nullptr) ++facts_.binary;
  if (fathom_.open() || FindPhrase(line)) return TakeMarked(line);
  Stamp(ReadTime(line));
}

void LogDigest::TakeMarked(std::string_view line) {
  line_.Read(line);
  const std::string_view message = line_.message();
  const auto [phrase, has_path] = OpeningOf(message);
  if (phrase) return TakeKnown(phrase->kind, message.substr(phrase->at));
  if (const auto code = Diagnostic(has_path)) return TakeKnown(*code, message);
  Stamp(ReadTime(line));
  if (fathom_.open()) fathom_.Continue(line_, {facts_.lines, line_.time()}, facts_);
}

void LogDigest::TakeKnown(LogKind kind, std::string_view said) {
  Stamp(line_.time());
  if (!TakeKind(kind, said)) return;
  Count(kind, line_.time());
  Complain(kind, line_, facts_);
}

// In a text only where Dynamo's own target stands in front: engines log prompts.
std::optional<LogKind> LogDigest::Diagnostic(bool has_path) const {
  if (!has_path && !line_.Member(kCode)) return std::nullopt;
  return PhraseAt(line_.Text(kCode, 64));
}

bool LogDigest::TakeKind(LogKind kind, std::string_view said) {
  if (IsRouters(kind)) return TakeRouterLine(kind, said, line_, facts_);
  if (IsFathoms(kind)) return fathom_.Take(kind, said, line_, {facts_.lines, line_.time()}, facts_);
  const bool taken = TakeEngineLine(kind, said, facts_.engines);
  EngineFacts& engines = facts_.engines;
  if (engines.preemptions > 0 && engines.preemption_line == 0) {
    engines.preemption_line = facts_.lines;
  }
  return taken;
}

void LogDigest::Count(LogKind kind, std::optional<LogTime> time) {
  ++facts_.recognised;
  Tally& tally = facts_.kinds[static_cast<size_t>(kind)];
  if (tally.lines++ == 0) tally.first_line = facts_.lines;
  if (!time) return;
  Extend(tally.first, tally.last, *time);
  const uint64_t in_minute = minutes_[static_cast<size_t>(kind)].Add(*time);
  tally.peak_per_minute = std::max(tally.peak_per_minute, in_minute);
}

void LogDigest::Stamp(std::optional<LogTime> time) {
  if (time) Extend(facts_.first, facts_.last, *time);
}

size_t LogDigest::MemoryBytes() const {
  constexpr size_t kNode = 64;  // of a map, without what it holds
  size_t bytes = sizeof(*this) + kept_.capacity() + line_.MemoryBytes();
  for (const auto& [rank, work] : facts_.ranks) bytes += kNode + BytesOf(rank) + sizeof(work);
  for (const auto& [rank, record] : facts_.trust) bytes += kNode + BytesOf(rank) + BytesOf(record);
  for (const auto& [clash, times] : facts_.clashes) {
    bytes += kNode + sizeof(clash) + clash.subject.capacity() + sizeof(times);
  }
  for (const auto& [complaint, line] : facts_.complaints) {
    bytes += kNode + sizeof(complaint) + complaint.worker.capacity() + sizeof(line);
  }
  for (const auto& [model, record] : facts_.unread) {
    bytes += kNode + sizeof(model) + model.capacity() + BytesOf(record);
  }
  for (const auto& [model, size] : facts_.agreed_sizes) {
    bytes += kNode + sizeof(model) + model.capacity() + sizeof(size);
  }
  return bytes;
}

}  // namespace fathom
