#include "router/gateway/openai_error.h"

#include <algorithm>
#include <iterator>

#include "codec/json.h"

namespace fathom {
namespace {

// An answer names the former code in a header for one release, so that clients can change in
// between.
constexpr Renamed kRenamedCodes[] = {{"bad_routing_wish", "bad_routing_override", "0.1.0"}};

std::string_view TypeOf(int status) {
  if (status == 401) return "authentication_error";
  if (status == 403) return "permission_error";
  if (status == 404) return "not_found_error";
  if (status == 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

}  // namespace

std::span<const Renamed> RenamedCodes() { return kRenamedCodes; }

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
  const auto* const renamed = std::ranges::find(kRenamedCodes, code, &Renamed::now);
  if (renamed != std::end(kRenamedCodes)) {
    answer.headers.emplace_back("x-fathom-former-code", std::string(renamed->former));
  }
  return answer;
}

Answer MethodNotAllowed(std::string_view allowed) {
  Answer answer = OpenAiError(405, "method_not_allowed", "use " + std::string(allowed) + " here");
  answer.headers.emplace_back("allow", std::string(allowed));
  return answer;
}

}  // namespace fathom
