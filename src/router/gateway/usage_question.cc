#include "router/gateway/usage_question.h"

#include "base/check.h"
#include "codec/json_scan.h"

namespace fathom {
namespace {

// Whether the object has include_usage false and nothing else.
bool OnlyDeclines(std::string_view stream_options) {
  bool declines = false;
  JsonScanner scanner(stream_options);
  for (;;) {
    const auto member = scanner.Next();
    if (!member) return false;
    if (!*member) return declines;
    declines = JsonKeyIs((*member)->key, "include_usage") && (*member)->value == "false";
    if (!declines) return false;
  }
}

}  // namespace

bool LeavesUsageOpen(const RequestFields& fields) {
  const std::string_view options = fields.stream_options;
  return fields.stream && (options.empty() || options == "null" || OnlyDeclines(options));
}

std::array<std::string_view, 3> WithUsageQuestion(std::string_view body,
                                                  const RequestFields& fields) {
  if (fields.stream_options.empty()) {
    // After the opening brace of the object, which is known to have members.
    const size_t open = body.find('{') + 1;
    return {body.substr(0, open), R"("stream_options":{"include_usage":true},)", body.substr(open)};
  }
  // The body may differ from the one that the fields were read from: its prompt may be token ids.
  const auto here = ReadRequestFields(body);
  CHECK(here && !here->stream_options.empty());
  const auto at = static_cast<size_t>(here->stream_options.data() - body.data());
  return {body.substr(0, at), R"({"include_usage":true})",
          body.substr(at + here->stream_options.size())};
}

void UsageQuestion::Consider(UsageHabits& habits) {
  habit_ = nullptr;
  plan_ = {};
  if (policy_ != Policy::kMayAsk || !open_) return;
  habit_ = route_ == Route::kChat ? &habits.chats : &habits.texts;
  plan_ = habit_->Next();
  if (dropped_.habit != nullptr) plan_.ask = false;
}

void UsageQuestion::Answered(int status) {
  if (habit_ == nullptr || habit_ != dropped_.habit || status >= 300) return;
  habit_->LearnRefused(dropped_.plan);
}

UsageWish UsageQuestion::wish() const {
  using Action = UsageWish::Action;
  if (policy_ == Policy::kIgnore) return {};
  return {plan_.ask ? Action::kTakeOut : Action::kRead, plan_.null_unasked};
}

void UsageQuestion::Learn(const UsageFilter& stream) {
  if (habit_ == nullptr || habit_ == dropped_.habit) return;
  const auto& usage = stream.usage();
  if (plan_.ask) {
    habit_->LearnAsked(plan_, usage && usage->cached_tokens);
  } else if (stream.saw_choices() && !stream.saw_error()) {
    // A failed answer would not contain usage in any case.
    habit_->LearnUnasked(plan_, usage.has_value(), stream.saw_null());
  }
}

}  // namespace fathom
