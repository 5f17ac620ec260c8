#include "router/gateway/hint_of_request.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "codec/http_head.h"

namespace fathom {
namespace {

constexpr HintKind kUsualOrder[] = {
    HintKind::kClaudeCodeSession,
    HintKind::kCodexThread,
    HintKind::kDynamoSession,
    HintKind::kPromptCacheKey,
    HintKind::kMetadataUser,
    HintKind::kSafetyIdentifier,
    HintKind::kUser,
};

// A request with these headers and this body.
class Asked {
 public:
  Asked(const std::vector<Header>& headers, std::string body) : body_(std::move(body)) {
    for (const Header& header : headers) headers_.Push(header);
    fields_ = *ReadRequestFields(body_);
  }
  std::optional<HintOfRequest> Hint(std::span<const HintKind> order = kUsualOrder) const {
    return FindHint(order, headers_, fields_);
  }

 private:
  const std::string body_;
  HeaderList headers_;
  RequestFields fields_;
};

TEST(HintOfRequest, IsTheFirstOfTheOrderThatIsPresent) {
  struct Step {
    std::string_view value;
    HintKind kind;
    bool names_session;
  };
  constexpr Step kSteps[] = {
      {"claude", HintKind::kClaudeCodeSession, true},
      {"codex", HintKind::kCodexThread, true},
      {"dynamo", HintKind::kDynamoSession, true},
      {"cache", HintKind::kPromptCacheKey, true},
      {"u_account_1_session_2", HintKind::kMetadataUser, true},
      {"safe", HintKind::kSafetyIdentifier, false},
      {"me", HintKind::kUser, false},
  };
  const Asked all({{"a", "claude", HeaderName::kClaudeCodeSessionId},
                   {"b", "codex", HeaderName::kThreadId},
                   {"c", "dynamo", HeaderName::kDynamoSessionId}},
                  R"({"user":"me","safety_identifier":"safe","prompt_cache_key":"cache",)"
                  R"("metadata":{"user_id":"u_account_1_session_2"}})");
  std::span<const HintKind> order = kUsualOrder;
  for (const Step& step : kSteps) {
    const auto hint = all.Hint(order);
    ASSERT_TRUE(hint) << step.value;
    EXPECT_EQ(hint->value, step.value);
    EXPECT_EQ(hint->kind, step.kind);
    EXPECT_EQ(hint->names_session, step.names_session) << step.value;
    order = order.subspan(1);
  }
  EXPECT_FALSE(all.Hint(order)) << "hints are off";
}

TEST(HintOfRequest, OfClaudeCodeNamesTheAgentToo) {
  const Asked asked({{"a", "s", HeaderName::kClaudeCodeSessionId},
                     {"b", "agent-1", HeaderName::kClaudeCodeAgentId}},
                    "{}");
  EXPECT_EQ(asked.Hint()->part, "agent-1");
  EXPECT_FALSE(Asked({{"b", "agent-1", HeaderName::kClaudeCodeAgentId}}, "{}").Hint());
}

TEST(HintOfRequest, IsATextOfSomeLength) {
  for (const char* body :
       {"{}", R"({"user":""})", R"({"user":5})", R"({"user":null})", R"({"user":["a"]})",
        R"({"metadata":"user_id"})", R"({"metadata":{"user_id":7}})", R"({"metadata":{}})",
        R"({"metadata":null})", R"({"nested":{"user":"a"}})"}) {
    EXPECT_FALSE(Asked({}, body).Hint()) << body;
  }
  const auto of_length = [](size_t length) {
    return Asked({}, R"({"user":")" + std::string(length, 'a') + R"("})").Hint();
  };
  EXPECT_TRUE(of_length(kLongestHint));
  EXPECT_FALSE(of_length(kLongestHint + 1));
  const std::string large(kLongestMetadata, 'a');
  EXPECT_FALSE(Asked({}, R"({"metadata":{"user_id":"u","b":")" + large + R"("}})").Hint());
}

TEST(HintOfRequest, PassesOverOneThatIsTooLongOrEmpty) {
  const Asked asked({{"a", "", HeaderName::kThreadId}},
                    R"({"prompt_cache_key":")" + std::string(kLongestHint + 1, 'a') +
                        R"(","metadata":{"user_id":"only-a-user"},"user":"me"})");
  const auto hint = asked.Hint();
  ASSERT_TRUE(hint);
  EXPECT_EQ(hint->value, "only-a-user");
  EXPECT_FALSE(hint->names_session);
}

}  // namespace
}  // namespace fathom
