#include "lab/mock/visit.h"

#include <ctime>
#include <utility>
#include <vector>

namespace fathom {
namespace {

std::string HttpDate() {
  const time_t now = std::time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  char text[40];
  const size_t size = std::strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return {text, size};
}

// What came in, sent back so that a test can see it. Header values hold no line breaks.
std::vector<std::pair<std::string, std::string>> Reflections(const RequestHead& head) {
  std::vector<std::pair<std::string, std::string>> out = {{"date", HttpDate()},
                                                          {"server", "uvicorn"}};
  if (const Header* id = head.headers.Find(HeaderName::kRequestId)) {
    out.emplace_back("x-mock-request-id", id->value);
  }
  if (const Header* trace = head.headers.Find("traceparent")) {
    out.emplace_back("x-mock-traceparent", trace->value);
  }
  return out;
}

}  // namespace

Answer JsonAnswer(int status, std::string body) {
  return {.status = status, .body = std::move(body)};
}

Answer ErrorAnswer(int status, std::string_view type, std::string_view message,
                   std::string_view param) {
  return JsonAnswer(status, ErrorBody(message, type, param, status));
}

void AppendHead(std::string& out, const Visit& visit, std::string_view content_type) {
  out += "HTTP/1.1 200 OK\r\n";
  for (const auto& [name, value] : Reflections(visit.connection.head())) {
    out.append(name).append(": ").append(value).append("\r\n");
  }
  out.append("content-type: ").append(content_type).append("\r\n");
  if (!visit.connection.keep_alive()) out += "connection: close\r\n";
}

Task<Outcome> Finish(Visit& visit, Answer answer) {
  for (auto& header : Reflections(visit.connection.head())) {
    answer.headers.push_back(std::move(header));
  }
  auto responding = visit.connection.Respond(answer);
  const bool sent = co_await responding;
  if (!sent) co_return Outcome::kCancelled;
  co_return answer.status == 200 ? Outcome::kCompleted : Outcome::kFailed;
}

Outcome Die(Visit& visit) {
  visit.connection.socket().ResetOnClose();
  visit.connection.CloseAfterwards();
  return Outcome::kFailed;
}

Task<Outcome> FallSilent(Visit& visit) {
  while (!visit.presence.gone()) co_await visit.presence.Until(kNever);
  co_return Outcome::kCancelled;
}

}  // namespace fathom
