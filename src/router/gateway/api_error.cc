#include "router/gateway/api_error.h"

#include "codec/json.h"
#include "router/gateway/openai_error.h"

namespace fathom {
namespace {

std::string_view MessagesErrorType(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

std::string MessagesErrorBody(int status, std::string_view message) {
  JsonWriter w;
  w.BeginObject().Key("type").String("error").Key("error").BeginObject();
  w.Key("type").String(MessagesErrorType(status)).Key("message").String(message);
  w.EndObject().EndObject();
  return w.Take();
}

// As OpenAI documents it, and with "error" as in every other error of this API: its client
// packages raise an exception only for that, and would return a part of the text as the response.
std::string ResponsesErrorEventBody(int status, std::string_view code, std::string_view message,
                                    uint64_t sequence) {
  JsonWriter w;
  w.BeginObject().Key("type").String("error").Key("sequence_number").Unsigned(sequence);
  w.Key("code").String(code).Key("message").String(message).Key("param").Null();
  std::string body = w.Take();
  // The other body is an object with one member.
  return body.append(",").append(
      std::string_view(OpenAiErrorBody(status, code, message)).substr(1));
}

}  // namespace

Answer ApiError(AnswerForm form, int status, std::string_view code, std::string_view message,
                std::string_view param) {
  Answer answer = OpenAiError(status, code, message, param);
  if (form == AnswerForm::kMessages) answer.body = MessagesErrorBody(status, message);
  return answer;
}

std::string ApiErrorEvent(AnswerForm form, int status, std::string_view code,
                          std::string_view message, uint64_t sequence) {
  switch (form) {
    case AnswerForm::kMessages:
      return "event: error\ndata: " + MessagesErrorBody(status, message) + "\n\n";
    case AnswerForm::kResponses:
      return "event: error\ndata: " + ResponsesErrorEventBody(status, code, message, sequence) +
             "\n\n";
    case AnswerForm::kCompletion:
    case AnswerForm::kGenerate:
    case AnswerForm::kOther:
      break;
  }
  return "data: " + OpenAiErrorBody(status, code, message) + "\n\n";
}

}  // namespace fathom
