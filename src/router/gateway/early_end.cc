#include "router/gateway/early_end.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "router/gateway/sse_event.h"

namespace fathom {
namespace {

constexpr std::string_view kAborted = R"("abort")";
constexpr std::string_view kCancelled = R"("cancelled")";
constexpr std::string_view kError = R"("error")";

bool HasWord(std::string_view text, std::string_view word) {
  return memmem(text.data(), text.size(), word.data(), word.size()) != nullptr;
}

bool IsClientsFault(std::string_view status) { return status.size() == 3 && status[0] == '4'; }

}  // namespace

bool EndReader::aborted() const { return aborted_ && !excused_; }

bool EndReader::ended_early() const {
  if (form_ != AnswerForm::kMessages) return aborted();
  return type_ == Type::kMessage && !stop_reason_;
}

void EndReader::OnLeaf(std::string_view value) {
  switch (form_) {
    case AnswerForm::kCompletion:
    case AnswerForm::kGenerate:
      return OnCompletionLeaf(value);
    case AnswerForm::kMessages:
      return OnMessageLeaf(value);
    case AnswerForm::kResponses:
      return OnResponseLeaf(value);
    case AnswerForm::kOther:
      return;
  }
}

void EndReader::OnCompletionLeaf(std::string_view value) {
  // An answer may have a list of all its token ids.
  if (!value.starts_with('"') && !value.starts_with('4')) return;
  if (At({"choices", "finish_reason"}) || At({"choices", "finish_reason", "type"}) ||
      At({"meta_info", "finish_reason", "type"})) {
    aborted_ = aborted_ || value == kAborted;
  } else if (At({"choices", "finish_reason", "status_code"}) ||
             At({"meta_info", "finish_reason", "status_code"})) {
    excused_ = excused_ || IsClientsFault(value);
  }
}

void EndReader::OnMessageLeaf(std::string_view value) {
  if (At({"type"})) return ReadType(value);
  if (!At({"stop_reason"}) && !At({"delta", "stop_reason"})) return;
  stop_reason_ = value != "null" && value != kAborted;
}

void EndReader::OnResponseLeaf(std::string_view value) {
  if (At({"type"})) {
    ReadType(value);
    aborted_ = aborted_ || type_ == Type::kResponseCancelled;
  } else if (At({"status"}) || At({"response", "status"})) {
    aborted_ = aborted_ || value == kCancelled;
  } else if (At({"incomplete_details", "reason"}) ||
             At({"response", "incomplete_details", "reason"})) {
    aborted_ = aborted_ || value == kAborted;
  } else if (At({"background"}) || At({"response", "background"})) {
    excused_ = excused_ || value == "true";
  }
}

void EndReader::ReadType(std::string_view value) {
  const auto one_of = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::find(words, value) != words.end();
  };
  type_ = value == R"("message")"              ? Type::kMessage
          : value == R"("message_stop")"       ? Type::kMessageStop
          : value == R"("error")"              ? Type::kError
          : value == R"("response.cancelled")" ? Type::kResponseCancelled
          : one_of({R"("response.completed")", R"("response.incomplete")", R"("response.failed")"})
              ? Type::kResponseEnd
              : Type::kOther;
}

bool StreamEnd::Mentions(std::string_view events) const {
  switch (form_) {
    case AnswerForm::kCompletion:
    case AnswerForm::kGenerate:
      return HasWord(events, kAborted);
    case AnswerForm::kMessages:
      return HasWord(events, "\"message_") || HasWord(events, kError);
    case AnswerForm::kResponses:
      // Every closing event has the response.
      return HasWord(events, R"("response")") || HasWord(events, R"(cancelled")") ||
             HasWord(events, kError);
    case AnswerForm::kOther:
      break;
  }
  return false;
}

size_t StreamEnd::Find(std::string_view events) {
  for (size_t at = 0; at < events.size();) {
    const SseEvent event(events.substr(at));
    if (Mentions(event.text()) && EndsEarly(event)) return at;
    at += event.text().size();
  }
  return std::string_view::npos;
}

bool StreamEnd::IsCut() const {
  const bool must_close = form_ == AnswerForm::kMessages || form_ == AnswerForm::kResponses;
  return must_close && !closed_;
}

// An event that is cut off within a line closes nothing: its data may be incomplete.
bool StreamEnd::EndsEarly(const SseEvent& event) {
  EndReader reader(form_);
  reader.Feed(event.data());
  const bool whole_lines = event.text().ends_with('\n') || event.text().ends_with('\r');
  closed_ = closed_ || (whole_lines && reader.closes());
  if (form_ != AnswerForm::kMessages) return reader.aborted();
  stop_reason_ = stop_reason_ || reader.gives_stop_reason();
  return reader.is_message_stop() && !stop_reason_;
}

}  // namespace fathom
