#include "router/gateway/openai_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codec/json.h"

namespace fathom {
namespace {

std::string Field(const std::string& body, std::string_view name) {
  const auto json = Json::Parse(body);
  EXPECT_TRUE(json) << body;
  const Json* const error = json->Find("error");
  const Json* const field = error != nullptr ? error->Find(name) : nullptr;
  if (field == nullptr) return "missing";
  return field->is_null() ? "null" : *field->string();
}

TEST(OpenAiError, HasTheFourFieldsWhateverTheMessageHolds) {
  const std::string body = OpenAiErrorBody(400, "bad", "a \"quoted\"\nline \x01 and \xff");
  EXPECT_EQ(Field(body, "code"), "bad");
  EXPECT_EQ(Field(body, "param"), "null");
  EXPECT_EQ(Field(body, "type"), "invalid_request_error");
  EXPECT_EQ(Field(body, "message"), "a \"quoted\"\nline \x01 and \xef\xbf\xbd");
  EXPECT_EQ(Field(OpenAiErrorBody(404, "c", "m", "model"), "param"), "model");
}

TEST(OpenAiError, HasTheFormerCodeBesideARenamedOne) {
  const Answer renamed = OpenAiError(400, "bad_routing_override", "m");
  EXPECT_EQ(Field(renamed.body, "code"), "bad_routing_override");
  EXPECT_THAT(renamed.headers,
              testing::Contains(testing::Pair("x-fathom-former-code", "bad_routing_wish")));
  EXPECT_THAT(OpenAiError(400, "bad_limit", "m").headers, testing::IsEmpty());
}

TEST(OpenAiError, DerivesTheTypeFromTheStatus) {
  const std::pair<int, const char*> cases[] = {
      {400, "invalid_request_error"}, {401, "authentication_error"},  {403, "permission_error"},
      {404, "not_found_error"},       {413, "invalid_request_error"}, {429, "rate_limit_error"},
      {500, "server_error"},          {503, "server_error"}};
  for (const auto& [status, type] : cases) {
    EXPECT_EQ(Field(OpenAiErrorBody(status, "c", "m"), "type"), type) << status;
  }
}

TEST(OpenAiError, SaysWhenToComeBackAndHowToIdentifyOneself) {
  const auto header = [](const Answer& answer, std::string_view name) -> std::string {
    for (const auto& [key, value] : answer.headers) {
      if (key == name) return value;
    }
    return "";
  };
  EXPECT_EQ(header(OpenAiError(429, "c", "m"), "retry-after"), "1");
  EXPECT_EQ(header(OpenAiError(503, "c", "m"), "retry-after"), "1");
  EXPECT_EQ(header(OpenAiError(502, "c", "m"), "retry-after"), "");
  EXPECT_EQ(header(OpenAiError(401, "c", "m"), "www-authenticate"), "Bearer");
  EXPECT_EQ(OpenAiError(418, "c", "m").status, 418);
}

}  // namespace
}  // namespace fathom
