#include "gateway/openai_error.h"

#include "codec/json.h"

namespace fathom {
namespace {

std::string_view TypeOf(int status) {
  if (status == 401) return "authentication_error";
  if (status == 403) return "permission_error";
  if (status == 404) return "not_found_error";
  if (status == 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

}  // namespace

std::string OpenAiErrorBody(int status, std::string_view code, std::string_view message,
                            std::string_view param) {
  JsonWriter w;
  w.BeginObject().Key("error").BeginObject();
  w.Key("message").String(message).Key("type").String(TypeOf(status));
  w.Key("param");
  param.empty() ? w.Null() : w.String(param);
  w.Key("code").String(code);
  w.EndObject().EndObject();
  return w.Take();
}

Answer OpenAiError(int status, std::string_view code, std::string_view message,
                   std::string_view param) {
  Answer answer{.status = status, .body = OpenAiErrorBody(status, code, message, param)};
  if (status == 429 || status == 503) answer.headers.emplace_back("retry-after", "1");
  if (status == 401) answer.headers.emplace_back("www-authenticate", "Bearer");
  return answer;
}

}  // namespace fathom
