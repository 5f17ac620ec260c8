#include "diagnose/listen/event_view.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/text.h"

namespace fathom {
namespace {

constexpr std::string_view kDim = "2";
constexpr std::string_view kRed = "31";
constexpr std::string_view kGreen = "32";
constexpr std::string_view kYellow = "33";
constexpr std::string_view kCyan = "36";

constexpr double kLastSecond = 253402300800;  // the year 10000
constexpr size_t kFirstShown = 2;             // of a long list of hashes
constexpr size_t kFirstTokens = 8;

std::string TimeOfDay(double unix_seconds) {
  if (!(unix_seconds >= 0 && unix_seconds < kLastSecond)) return "--:--:--.---";
  const auto milliseconds = static_cast<int64_t>(unix_seconds * 1000);
  const time_t seconds = milliseconds / 1000;
  tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:02}:{:02}:{:02}.{:03}", parts.tm_hour, parts.tm_min, parts.tm_sec,
                     milliseconds % 1000);
}

bool IsPlain(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return c > 0x20 && c < 0x7f; });
}

// Plain words as they are, anything else in quotes and escaped.
std::string Printable(std::string_view text) {
  if (!text.empty() && IsPlain(text)) return std::string(text);
  std::string out;
  AppendJsonString(out, text);
  return out;
}

// A sentence of ours with words of the peer in it.
std::string PrintableLine(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(out, [](unsigned char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return out;
}

std::string Counted(uint64_t n, std::string_view thing) {
  const std::string_view plural = n == 1 ? "" : thing.ends_with("ch") ? "es" : "s";
  return fmt::format("{} {}{}", n, thing, plural);
}

std::string Hashes(std::span<const uint64_t> hashes) {
  std::string out;
  const bool all = hashes.size() <= kFirstShown + 1;
  for (const uint64_t hash : hashes.first(all ? hashes.size() : kFirstShown)) {
    out += fmt::format(" {:016x}", hash);
  }
  if (!all) out += fmt::format(" … {:016x}", hashes.back());
  return out;
}

std::string Tokens(std::span<const TokenId> tokens) {
  if (tokens.size() <= kFirstTokens + 1) return fmt::format("[{}]", fmt::join(tokens, ", "));
  return fmt::format("[{} … {}]", fmt::join(tokens.first(kFirstTokens), ", "), tokens.back());
}

std::string Group(const StoredEvent& event) {
  switch (event.kind) {
    case GroupKind::kFull:
      return fmt::format("group {} full", event.group);
    case GroupKind::kWindow:
      return fmt::format("group {} window {}", event.group, event.window);
    case GroupKind::kUnsupported:
      return fmt::format("group {} of an unknown kind", event.group);
  }
  return {};
}

// "6 blocks", or "2 of 6 blocks" where only the last ones have names.
std::string BlockCount(const StoredEvent& event) {
  const BlockShape shape{.size = event.block_size, .pairs = event.pairs};
  const size_t spanned = event.block_size == 0 ? 0 : shape.BlocksIn(event.tokens.size());
  if (spanned <= event.hashes.size()) return Counted(event.hashes.size(), "block");
  return fmt::format("{} of {}", event.hashes.size(), Counted(spanned, "block"));
}

std::string Time(double seconds) {
  if (std::abs(seconds) < 1) return fmt::format("{:.0f} ms", seconds * 1000);
  if (std::abs(seconds) < 1000) return fmt::format("{:.1f} s", seconds);
  return fmt::format("{:.3g} h", seconds / 3600);
}

std::string Size(double bytes) {
  if (bytes < 1024) return fmt::format("{:.0f} B", bytes);
  if (bytes < 1024 * 1024) return fmt::format("{:.1f} KiB", bytes / 1024);
  return fmt::format("{:.1f} MiB", bytes / (1024 * 1024));
}

// A publisher whose clock is ahead of ours would otherwise look like one from the future.
std::string Lag(const EventTally& tally) {
  if (!tally.lag) return "";
  const std::string_view skew = *tally.lag < -0.001 ? ", its clock is ahead of ours" : "";
  return fmt::format("  lag {} (most {}{})", Time(*tally.lag), Time(tally.most_lag), skew);
}

std::string Troubles(const EventTally& tally) {
  std::string out;
  if (tally.gaps > 0) {
    out += fmt::format("  {} missing in {}", Counted(tally.missing, "batch"),
                       Counted(tally.gaps, "gap"));
  }
  if (tally.restarts > 0) out += "  " + Counted(tally.restarts, "restart");
  if (tally.malformed > 0) out += fmt::format("  {} malformed", tally.malformed);
  if (tally.ignored > 0) out += fmt::format("  {} ignored", tally.ignored);
  return out.empty() ? "  no gaps" : out;
}

std::string Rates(const EventTally& t) {
  const double seconds = std::max(t.seconds, 1e-3);
  const auto rate = [&](uint64_t n) { return static_cast<double>(n) / seconds; };
  return fmt::format("{:.1f} batches/s  +{:.1f} -{:.1f} blocks/s  {}/s", rate(t.batches),
                     rate(t.stored), rate(t.removed), Size(rate(t.bytes)));
}

std::string Totals(const EventTally& t) {
  return fmt::format("{}  +{} -{} blocks  {}  {}", Counted(t.batches, "batch"), t.stored, t.removed,
                     Counted(t.cleared, "clear"), Size(static_cast<double>(t.bytes)));
}

}  // namespace

void EventTally::Add(const EventBatch& batch) {
  ++batches;
  malformed += batch.malformed;
  ignored += batch.ignored;
  for (const CacheEvent& event : batch.events) {
    if (const auto* store = std::get_if<StoredEvent>(&event)) stored += store->hashes.size();
    if (const auto* removal = std::get_if<RemovedEvent>(&event)) removed += removal->hashes.size();
    if (std::holds_alternative<ClearedEvent>(event)) ++cleared;
  }
}

void EventTally::AddLag(double seconds_late) {
  most_lag = lag ? std::max(most_lag, seconds_late) : seconds_late;
  lag = seconds_late;
}

std::string TextView::Paint(std::string_view code, std::string text) const {
  return color_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
}

std::string TextView::Prefix(const EventOrigin& origin, bool numbered) const {
  std::string out = TimeOfDay(origin.time);
  if (!origin.label.empty()) out += " " + Printable(origin.label);
  out += origin.rank ? fmt::format(" rank {}", *origin.rank) : " rank ?";
  if (numbered && origin.sequence) out += fmt::format(" seq {}", *origin.sequence);
  if (origin.replayed) out += " replayed";
  return Paint(kDim, out) + "  ";
}

std::string TextView::Describe(const StoredEvent& event) const {
  std::string out = Paint(kGreen, fmt::format("+{} x{}", BlockCount(event), event.block_size));
  out += Hashes(event.hashes);
  out += event.parent ? fmt::format(" after {:016x}", *event.parent) : " from the start";
  out += fmt::format("  {} {}", Name(event.tier), Group(event));
  if (!event.lora.empty()) out += "  lora " + Printable(event.lora);
  if (!event.salt.empty()) out += "  salted";
  if (event.pairs) out += "  pairs";
  if (!event.extra.empty()) out += "  " + Counted(event.extra.size(), "extra key");
  if (tokens_) out += "  tokens " + Tokens(event.tokens);
  return out;
}

std::string TextView::Describe(const RemovedEvent& event) const {
  std::string out = Paint(kYellow, "-" + Counted(event.hashes.size(), "block"));
  out += Hashes(event.hashes);
  return out + fmt::format("  {} group {}", Name(event.tier), event.group);
}

std::string TextView::Describe(const MovedEvent& event) const {
  return Paint(kCyan, "moved") + fmt::format(" {:016x}  {} to {} group {}", event.hash,
                                             Name(event.from), Name(event.to), event.group);
}

std::string TextView::Describe(const ClearedEvent&) const { return Paint(kCyan, "cleared"); }

std::string TextView::Batch(const EventOrigin& origin, const EventBatch& batch, size_t) const {
  const std::string prefix = Prefix(origin, true);
  std::string out;
  const auto line = [&](const std::string& text) { out += prefix + text + "\n"; };
  for (const CacheEvent& event : batch.events) {
    line(std::visit([&](const auto& known) { return Describe(known); }, event));
  }
  if (batch.malformed > 0) {
    line(Paint(kRed, fmt::format("{} left out: {}", Counted(batch.malformed, "malformed event"),
                                 PrintableLine(batch.first_problem))));
  }
  if (batch.ignored > 0) line(Counted(batch.ignored, "event") + " without blocks");
  if (out.empty()) line("nothing about blocks");
  return out;
}

std::string TextView::Gap(const EventOrigin& origin, uint64_t first, uint64_t last) const {
  const std::string which =
      first == last ? fmt::format("seq {}", first) : fmt::format("seq {}..{}", first, last);
  const uint64_t more = last - first;  // the count itself may not fit
  return Prefix(origin, false) +
         Paint(kRed,
               fmt::format("{} missing ({})", which,
                           more == 0 ? "1 batch" : fmt::format("{:.0f} batches", more + 1.0))) +
         "\n";
}

std::string TextView::Restart(const EventOrigin& origin, uint64_t before, uint64_t now) const {
  return Prefix(origin, false) +
         Paint(kCyan, fmt::format("restarted: seq went back from {} to {}, earlier blocks are gone",
                                  before, now)) +
         "\n";
}

std::string TextView::Malformed(const EventOrigin& origin, std::string_view reason,
                                size_t bytes) const {
  return Prefix(origin, true) +
         Paint(kRed,
               fmt::format("malformed: {} ({})", PrintableLine(reason), Counted(bytes, "byte"))) +
         "\n";
}

std::string TextView::Connection(const EventOrigin& origin, bool up) const {
  return Prefix(origin, false) +
         Paint(up ? kGreen : kRed, fmt::format("{} {}", up ? "connected to" : "disconnected from",
                                               Printable(origin.source))) +
         "\n";
}

std::string TextView::Summary(const EventTally& tally, bool last) const {
  const std::string span = fmt::format("{:.1f} s", tally.seconds);
  const std::string what = last ? Totals(tally) : Rates(tally);
  return Paint(kDim, fmt::format("{} {}: {}{}{}", last ? "== in all" : "--", span, what,
                                 Troubles(tally), Lag(tally))) +
         "\n";
}

}  // namespace fathom
