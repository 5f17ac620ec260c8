#include "lab/mock/fault_page.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "codec/json.h"

namespace fathom {
namespace {

constexpr double kHour = 3600;  // seconds
constexpr uint64_t kMillion = 1'000'000;

// In the order of their types.
constexpr std::string_view kPromptFaults[] = {"none", "bos", "template", "vocabulary"};
constexpr std::string_view kEventFaults[] = {"none", "no-removals", "hide-salt", "hide-lora"};
constexpr std::string_view kCachingReports[] = {"none", "truth"};

using Words = std::span<const std::string_view>;

std::string Listed(Words words) { return fmt::format("{}", fmt::join(words, ", ")); }

Result<size_t> IndexOf(std::string_view word, Words words) {
  const auto found = std::ranges::find(words, word);
  if (found != words.end()) return static_cast<size_t>(found - words.begin());
  return Fail(Blame::kCaller, "'{}' is none of {}", word, Listed(words));
}

// Every fault, once, with its name.
template <class Options, class Visitor>
void VisitFaults(Options& options, Visitor& visitor) {
  auto& events = options.kv_events;
  visitor.Choice("prompt_fault", options.prompt_fault, kPromptFaults);
  visitor.Flag("prefix_caching", options.prefix_caching);
  visitor.Choice("prefix_caching_report", options.tell_prefix_caching, kCachingReports);
  visitor.Flag("cached_tokens_report", options.cached_tokens_report);
  visitor.Flag("force_usage", options.force_usage);
  visitor.Flag("usage_with_choices", options.usage_with_choices);
  visitor.Choice("kv_events_fault", events.omission, kEventFaults);
  visitor.Flag("kv_silent", events.silent);
  visitor.Time("kv_delay", events.delay);
  visitor.Count("kv_drop_every", events.drop_every, kMillion);
  visitor.Count("kv_lose_every", events.lose_every, kMillion);
  visitor.Count("kv_block_size_label", events.block_size_label, 65536);
  visitor.Share("fail_rate", options.fail_rate);
  visitor.Share("hang_rate", options.hang_rate);
  visitor.Count("die_after_tokens", options.die_after_tokens, kMillion);
  visitor.Count("abort_after_tokens", options.abort_after_tokens, kMillion);
  visitor.Flag("drain_abort", options.drain_abort);
  visitor.Flag("busy", options.busy);
  visitor.Time("report_delay", options.report_delay);
  visitor.Time("tokenize_delay", options.tokenize_delay);
}

class FaultWriter {
 public:
  template <class Type>
  void Choice(std::string_view name, Type value, Words words) {
    out_.Key(name).String(words[static_cast<size_t>(value)]);
  }
  void Flag(std::string_view name, bool value) { out_.Key(name).Bool(value); }
  void Count(std::string_view name, uint64_t value, uint64_t) { out_.Key(name).Unsigned(value); }
  void Share(std::string_view name, double value) { out_.Key(name).Number(value); }
  void Time(std::string_view name, Duration value) { out_.Key(name).Number(Seconds(value)); }

  JsonWriter& out() { return out_; }

 private:
  JsonWriter out_;
};

// Takes what the object names, and keeps the first complaint.
class FaultReader {
 public:
  explicit FaultReader(const Json& given) : given_(given) {}

  template <class Type>
  void Choice(std::string_view name, Type& value, Words words) {
    const Json* const json = Take(name);
    if (json == nullptr) return;
    const auto index = IndexOf(json->string() != nullptr ? *json->string() : "", words);
    if (!index) return Refuse(name, "must be one of " + Listed(words));
    value = static_cast<Type>(*index);
  }
  void Flag(std::string_view name, bool& value) {
    const Json* const json = Take(name);
    if (json == nullptr) return;
    if (json->boolean() == nullptr) return Refuse(name, "must be true or false");
    value = *json->boolean();
  }
  template <class Type>
  void Count(std::string_view name, Type& value, uint64_t most) {
    const Json* const json = Take(name);
    if (json == nullptr) return;
    const auto count = json->unsigned_integer();
    if (!count || *count > most) {
      return Refuse(name, fmt::format("must be a whole number up to {}", most));
    }
    value = static_cast<Type>(*count);
  }
  void Share(std::string_view name, double& value) {
    const auto number = Number(name, 1, "must be a number from 0 to 1");
    value = number.value_or(value);
  }
  void Time(std::string_view name, Duration& value) {
    const auto seconds = Number(name, kHour, "must be a number of seconds up to an hour");
    if (seconds) value = std::chrono::round<Duration>(std::chrono::duration<double>(*seconds));
  }

  Result<void> Finish() const {
    for (const auto& [name, value] : *given_.object()) {
      if (std::ranges::find(names_, name) != names_.end()) continue;
      return Fail(Blame::kCaller, "{}: no such fault; known faults: {}", name, Listed(names_));
    }
    if (complaint_.empty()) return {};
    return Fail(Blame::kCaller, "{}", complaint_);
  }

 private:
  const Json* Take(std::string_view name) {
    names_.push_back(name);
    return given_.Find(name);
  }
  std::optional<double> Number(std::string_view name, double most, std::string_view rule) {
    const Json* const json = Take(name);
    if (json == nullptr) return std::nullopt;
    const auto number = json->number();
    if (number && *number >= 0 && *number <= most) return number;
    Refuse(name, rule);
    return std::nullopt;
  }
  void Refuse(std::string_view name, std::string_view rule) {
    if (complaint_.empty()) complaint_ = fmt::format("{} {}", name, rule);
  }

  const Json& given_;
  std::vector<std::string_view> names_;
  std::string complaint_;
};

}  // namespace

std::string FaultsPage(const MockOptions& options) {
  FaultWriter writer;
  writer.out().BeginObject();
  VisitFaults(options, writer);
  writer.out().EndObject();
  return writer.out().Take();
}

Result<MockOptions> WithFaults(MockOptions options, std::string_view body) {
  TRY(const Json given, Json::Parse(body));
  if (given.object() == nullptr) return Fail(Blame::kCaller, "the faults must be a JSON object");
  options.prefix_caching_was_off = options.prefix_caching_was_off || !options.prefix_caching;
  FaultReader reader(given);
  VisitFaults(options, reader);
  TRY_VOID(reader.Finish());
  return options;
}

Result<PromptFault> ParsePromptFault(std::string_view word) {
  TRY(const size_t index, IndexOf(word, kPromptFaults));
  return static_cast<PromptFault>(index);
}

Result<EventOmission> ParseEventOmission(std::string_view word) {
  TRY(const size_t index, IndexOf(word, kEventFaults));
  return static_cast<EventOmission>(index);
}

}  // namespace fathom
