#include "router/gateway/usage_filter.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "codec/json_scan.h"
#include "router/gateway/sse_event.h"

namespace fathom {
namespace {

constexpr std::string_view kUsage = "\"usage\"";

size_t Find(std::string_view text, std::string_view word, size_t from = 0) {
  const void* const found =
      memmem(text.data() + from, text.size() - from, word.data(), word.size());
  return found == nullptr ? text.npos : static_cast<const char*>(found) - text.data();
}

std::string_view SkipSpace(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
}

bool HasElements(std::string_view value) {
  if (value == "null") return false;
  return !value.starts_with('[') || JsonElements(value).Next().has_value();
}

// The members of one event's object that matter, and their positions.
struct Layout {
  std::string_view usage;  // empty: no usage
  // The bytes to cut in order to remove the member, including one comma.
  const char* cut_from = nullptr;
  const char* cut_to = nullptr;
  bool choices = false;
  bool error = false;
};

// nullopt if it is not a JSON object: [DONE], for example.
std::optional<Layout> ReadLayout(std::string_view json) {
  Layout layout;
  JsonScanner scanner(json);
  const char* previous_end = nullptr;
  bool usage_opens = false;  // usage was the first member, so the comma after it is cut
  for (;;) {
    const auto next = scanner.Next();
    if (!next) return std::nullopt;
    if (!*next) return layout;
    const auto& [key, value] = **next;
    const char* const begin = key.data() - 1;
    const char* const end = value.data() + value.size();
    if (usage_opens) layout.cut_to = begin;
    usage_opens = false;
    if (JsonKeyIs(key, "usage")) {
      layout.usage = value;
      layout.cut_from = previous_end != nullptr ? previous_end : begin;
      layout.cut_to = end;
      usage_opens = previous_end == nullptr;
    } else if (JsonKeyIs(key, "choices")) {
      layout.choices = HasElements(value);
    } else if (JsonKeyIs(key, "error")) {
      layout.error = value != "null";
    }
    previous_end = end;
  }
}

}  // namespace

bool UsageFilter::WantsNulls() const {
  return wish_.action == UsageWish::Action::kTakeOut ? !wish_.null_unasked : !saw_null_;
}

// Whether it may contain usage: a search with very few false positives. Inside a string the word
// does not match, because its quotes are escaped there.
bool UsageFilter::Mentions(std::string_view text) const {
  for (size_t at = 0; (at = Find(text, kUsage, at)) != text.npos;) {
    at += kUsage.size();
    std::string_view rest = SkipSpace(text.substr(at));
    if (!rest.empty() && rest.front() == ':') rest = SkipSpace(rest.substr(1));
    const char next = rest.empty() ? '\n' : rest.front();
    if (next == '{' || next == '\n' || next == '\r') return true;
    if (next == 'n' && WantsNulls()) return true;
  }
  return false;
}

void UsageFilter::Note(std::string_view events) {
  if (wish_.action != UsageWish::Action::kRead) return;
  saw_choices_ = saw_choices_ || Find(events, "\"choices\"") != events.npos;
  saw_error_ = saw_error_ || Find(events, "\"error\"") != events.npos;
}

bool UsageFilter::Passes(std::string_view events) {
  Note(events);
  return !dropped_cr_ && !Mentions(events);
}

UsageFilter::Edit UsageFilter::Judge(const SseEvent& event) {
  const auto layout = ReadLayout(event.data());
  if (!layout || layout->usage.empty()) return {};
  const bool null = layout->usage == "null";
  if (!null && !layout->usage.starts_with('{')) return {};
  const bool alone = !null && !layout->choices && !layout->error;
  saw_null_ = saw_null_ || null;
  final_ = final_ || alone;
  if (const auto told = null ? std::nullopt : ReadUsage(layout->usage)) usage_ = told;
  if (wish_.action != UsageWish::Action::kTakeOut) return {};
  if (alone) return {0, event.text().size(), {}};
  if (!wish_.null_unasked) {
    return {event.PlaceOf(layout->cut_from), event.PlaceOf(layout->cut_to), {}};
  }
  if (null) return {};
  const char* const end = layout->usage.data() + layout->usage.size();
  return {event.PlaceOf(layout->usage.data()), event.PlaceOf(end), "null"};
}

size_t UsageFilter::Filter(std::string& text, size_t size) {
  if (size == 0) return 0;
  const std::string_view in = std::string_view(text).substr(0, size);
  Note(in);
  std::string kept;
  size_t copied = 0;  // bytes of `in` that were copied into `kept` or left out
  size_t at = 0;
  if (std::exchange(dropped_cr_, false) && in.starts_with('\n')) copied = at = 1;
  while (at < size) {
    const SseEvent event(in.substr(at));
    const std::string_view whole = event.text();
    const Edit edit = Mentions(whole) ? Judge(event) : Edit{};
    if (edit.to > edit.from) {
      kept.append(in.substr(copied, at + edit.from - copied)).append(edit.by);
      copied = at + edit.to;
      dropped_cr_ = edit.to == whole.size() && copied == size && whole.ends_with('\r');
    }
    at += whole.size();
  }
  if (copied == 0) return size;
  kept += in.substr(copied);
  text.replace(0, size, kept);
  return kept.size();
}

}  // namespace fathom
