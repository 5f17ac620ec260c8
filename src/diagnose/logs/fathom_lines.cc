#include "diagnose/logs/fathom_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "diagnose/logs/router_lines.h"

namespace fathom {
namespace {

constexpr size_t kMaxWord = 40;
constexpr size_t kMaxUrl = 200;
constexpr size_t kMaxWords = 400;
constexpr size_t kMaxAgreed = 64;
constexpr uint32_t kPatience = 32;  // lines of others among those of one record

// The record of the rank that the line names; nothing where there is no room.
TrustRecord* RecordOf(const LogLine& line, FathomLines::Place place, LogFacts& facts) {
  constexpr uint64_t kMaxRank = 1 << 20;
  const auto rank = std::min(line.Number("dp_rank").value_or(0), kMaxRank);
  const std::string worker = line.Text("worker_id", kMaxWord);
  LoggedRank key(line.Text("url", kMaxUrl), static_cast<uint32_t>(rank));
  if (key.first.empty()) key.first = worker;
  if (key.first.empty()) return nullptr;
  if (facts.trust.size() >= kMaxLogRanks && !facts.trust.contains(key)) return nullptr;
  TrustRecord& record = facts.trust[std::move(key)];
  if (!worker.empty()) record.worker_id = worker;
  record.line = place.number;
  if (place.time) record.time = place.time;
  record.cost = std::max(record.cost, line.Number("cost_tokens").value_or(0));
  return &record;
}

struct Words {
  std::string evidence;
  std::string fix;
};

void Doubt(TrustRecord& record, std::string_view state, std::string cause, Words words) {
  record.state = state;
  record.cause = std::move(cause);
  record.evidence = std::move(words.evidence);
  record.fix = std::move(words.fix);
  ++record.doubts;
}

// What is no doubt yet, but may well explain the next one.
void Hint(TrustRecord& record, std::string_view cause, Words words) {
  if (!record.cause.empty()) return;
  record.cause = cause;
  record.evidence = std::move(words.evidence);
  record.fix = std::move(words.fix);
}

// "no_events" in "A rank is doubted: no_events worker_id=..."
std::string WordAfter(std::string_view said, std::string_view label) {
  said.remove_prefix(label.size());
  return std::string(said.substr(0, std::min(said.find_first_of(" \n"), kMaxWord)));
}

void TakeDoubted(std::string_view said, const LogLine& line, TrustRecord& record) {
  Doubt(record, "doubted", WordAfter(said, "A rank is doubted: "),
        {.evidence = line.Text("evidence", kMaxWords), .fix = line.Text("fix", kMaxWords)});
}

void TakeAgain(std::string_view said, const LogLine& line, TrustRecord& record) {
  record.state = WordAfter(said, "A rank is ");
  if (record.cause.empty()) record.cause = line.Text("was", kMaxWord);
}

void TakeUnsteady(const LogLine& line, TrustRecord& record) {
  record.state = line.Text("state", kMaxWord);
  record.cause = line.Text("cause", kMaxWord);
  record.doubts += line.Number("times").value_or(0);
}

void TakeTrusted(const LogLine& line, TrustRecord& record) {
  constexpr uint64_t kLargest = 1 << 20;
  record.state = "trusted";
  const uint64_t size = line.Number("block_size").value_or(0);
  if (size != 0 && size <= kLargest) record.block_size = static_cast<uint32_t>(size);
}

void TakeRank(LogKind kind, std::string_view said, const LogLine& line, TrustRecord& record) {
  switch (kind) {
    case LogKind::kRankTrusted:
      return TakeTrusted(line, record);
    case LogKind::kRankDoubted:
      return TakeDoubted(said, line, record);
    case LogKind::kRankAgain:
      return TakeAgain(said, line, record);
    case LogKind::kRankUnsteady:
      return TakeUnsteady(line, record);
    case LogKind::kNoFeed:
      return Hint(record, "no_events", {line.Text("cause", kMaxWords), ""});
    case LogKind::kEventsLost:
      return Hint(record, "event_gap", {"", line.Text("fix", kMaxWords)});
    case LogKind::kUnhealthy:
      return Doubt(record, "excluded", "unhealthy", Words());
    default:
      return;
  }
}

// What was said of a worker's ranks no longer holds: its illness is over, or it has left.
void Absolve(LogKind kind, const LogLine& line, LogFacts& facts) {
  const std::string url = line.Text("url", kMaxUrl);
  const std::string worker = line.Text("worker_id", kMaxWord);
  for (auto& [rank, record] : facts.trust) {
    const bool same = rank.first == url || (!worker.empty() && record.worker_id == worker);
    if (!same) continue;
    if (kind == LogKind::kRemoved || record.cause == "unhealthy") record.state.clear();
  }
}

// Two sizes in one line, each after its label.
struct Labels {
  std::string_view worker;
  std::string_view router;
};

std::optional<Labels> LabelsOf(LogKind kind) {
  switch (kind) {
    case LogKind::kReportDiffers:
      return Labels{"KV block size ", "but "};
    case LogKind::kOddRank:
      return Labels{"have blocks of ", "other ranks "};
    case LogKind::kStaleReport:
      return Labels{"have blocks of ", "report says "};
    case LogKind::kWorkerRefused:
      return Labels{"its KV block size (", "of the fleet ("};
    default:
      return std::nullopt;
  }
}

bool TakeTwoSizes(LogKind kind, const Labels& labels, std::string_view said, const LogLine& line,
                  FathomLines::Place place, LogFacts& facts) {
  const SizeClash clash{.kind = kind,
                        .router = SizeAfter(said, labels.router),
                        .worker = SizeAfter(said, labels.worker),
                        .subject = line.Text("url", kMaxUrl)};
  if (clash.router == 0 || clash.worker == 0) return false;
  Count(clash, facts);
  const bool refused = kind == LogKind::kWorkerRefused;
  if (!refused && kind != LogKind::kOddRank) return true;  // nothing follows from it for the rank
  if (TrustRecord* record = RecordOf(line, place, facts)) {
    Doubt(*record, refused ? "excluded" : "doubted",
          refused ? "block_size_conflict" : "block_size_mismatch",
          {.evidence = fmt::format("blocks of {} tokens, {} in the rest of the fleet", clash.worker,
                                   clash.router),
           .fix = line.Text("fix", kMaxWords)});
  }
  return true;
}

bool TakeAgreed(std::string_view said, const LogLine& line, LogFacts& facts) {
  const uint32_t size = SizeAfter(said, "KV block size to ");
  if (size == 0) return false;
  std::string model = line.Text("model", kMaxUrl);
  const bool room = facts.agreed_sizes.size() < kMaxAgreed || facts.agreed_sizes.contains(model);
  if (room) facts.agreed_sizes[std::move(model)] = size;
  return true;
}

void TakeUnread(const LogLine& line, FathomLines::Place place, LogFacts& facts) {
  std::string model = line.Text("model", kMaxUrl);
  if (facts.unread.size() >= kMaxUnreadModels && !facts.unread.contains(model)) return;
  UnreadRecord& record = facts.unread[std::move(model)];
  record.unread = line.Text("unread", kMaxWord);
  record.reason = line.Text("reason", kMaxWord);
  record.route = line.Text("route", kMaxWord);
  record.engine = line.Text("engine", kMaxWord);
  record.fix = line.Text("fix", kMaxWords);
  record.cost = line.Number("cost_tokens").value_or(0);
  // A state that has ended is not part of the next one.
  if (!record.standing) {
    record.first_cost = record.cost;
    record.first = place.time;
    record.times = 0;
  }
  record.standing = true;
  ++record.times;
  record.line = place.number;
  record.last = place.time;
}

void TakeRead(const LogLine& line, LogFacts& facts) {
  const auto record = facts.unread.find(line.Text("model", kMaxUrl));
  if (record != facts.unread.end()) record->second.standing = false;
}

}  // namespace

bool FathomLines::Take(LogKind kind, std::string_view said, const LogLine& line, Place place,
                       LogFacts& facts) {
  if (kind == LogKind::kSizeAgreed) return TakeAgreed(said, line, facts);
  if (kind == LogKind::kSizeMismatch || kind == LogKind::kSizeConflict) {
    return Open(kind, said, line, place, facts);
  }
  if (const auto labels = LabelsOf(kind)) {
    return TakeTwoSizes(kind, *labels, said, line, place, facts);
  }
  if (kind == LogKind::kHealthy || kind == LogKind::kRemoved) {
    Absolve(kind, line, facts);
    return true;
  }
  if (kind == LogKind::kFollowing) return true;
  if (kind == LogKind::kPromptsUnread) {
    TakeUnread(line, place, facts);
    return true;
  }
  if (kind == LogKind::kPromptsRead) {
    TakeRead(line, facts);
    return true;
  }
  TrustRecord* record = RecordOf(line, place, facts);
  if (record != nullptr) TakeRank(kind, said, line, *record);
  return true;
}

bool FathomLines::Open(LogKind kind, std::string_view said, const LogLine& line, Place place,
                       LogFacts& facts) {
  SizeClash clash{.kind = kind};
  if (kind == LogKind::kSizeMismatch) {
    clash.router = SizeAfter(said, "Frontend KV block size (");
    clash.at_least = said.find("worker block size (at least ") != std::string_view::npos;
    clash.worker = SizeAfter(said, clash.at_least ? "(at least " : "worker block size (");
    if (clash.router == 0 || clash.worker == 0) return false;
  }
  End(facts);
  clash_ = std::move(clash);
  lines_left_ = kPatience;
  // In JSON the other lines are here already.
  for (size_t at = said.find('\n'); at != std::string_view::npos && open();) {
    const size_t next = said.find('\n', at + 1);
    TakeNext(said.substr(at + 1, next - at - 1), line, place, facts);
    at = next;
  }
  return true;
}

void FathomLines::Continue(const LogLine& line, Place place, LogFacts& facts) {
  TakeNext(line.message(), line, place, facts);
}

void FathomLines::TakeNext(std::string_view text, const LogLine& line, Place place,
                           LogFacts& facts) {
  if (clash_.kind == LogKind::kSizeMismatch) {
    TakeMismatch(text, line, place, facts);
  } else {
    TakeClaim(text, facts);
  }
  if (open() && --lines_left_ == 0) {
    lines_left_ = 1;
    End(facts);
  }
}

void FathomLines::TakeMismatch(std::string_view text, const LogLine& line, Place place,
                               LogFacts& facts) {
  if (text.find("KV-aware routing will not function") == std::string_view::npos) {
    if (text.find(" on the frontend") == std::string_view::npos) return;
    const size_t begin =
        std::min({text.find("Set "), text.find("Unset "), text.find("Configure "), text.size()});
    fix_ = text.substr(begin, kMaxWords);
    return;
  }
  clash_.subject = line.Text("url", kMaxUrl);
  if (std::string fix = line.Text("fix", kMaxWords); !fix.empty()) fix_ = std::move(fix);
  if (TrustRecord* record = RecordOf(line, place, facts)) {
    Doubt(
        *record, "doubted", "block_size_mismatch",
        {.evidence = fmt::format("blocks of {}{} tokens by its KV events, {} configured here",
                                 clash_.at_least ? "at least " : "", clash_.worker, clash_.router),
         .fix = fix_});
  }
  End(facts);
}

// "     32 tokens  http://10.0.0.1:8000 (vllm, by its own report)"
void FathomLines::TakeClaim(std::string_view text, LogFacts& facts) {
  if (text.find("Give all of them one block size") != std::string_view::npos) {
    lines_left_ = 0;
    return;
  }
  constexpr std::string_view kTokens = " tokens  http";
  const size_t tokens = text.find(kTokens);
  if (tokens == std::string_view::npos) return;
  std::string_view digits = text.substr(0, tokens);
  digits.remove_prefix(digits.find_last_of(' ') + 1);  // npos + 1 is 0
  const std::string_view url = text.substr(tokens + kTokens.size() - 4);
  SizeClash claim{.kind = LogKind::kSizeConflict,
                  .worker = SizeAfter(digits, ""),
                  .subject = std::string(url.substr(0, std::min(url.find(' '), kMaxUrl)))};
  if (claim.worker == 0) return;
  Count(std::move(claim), facts);
  lines_left_ = kPatience;
}

void FathomLines::End(LogFacts& facts) {
  if (open() && clash_.kind == LogKind::kSizeMismatch) Count(clash_, facts);
  lines_left_ = 0;
  fix_.clear();
}

}  // namespace fathom
