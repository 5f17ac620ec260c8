#include "router/gateway/token_complaints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/check.h"

namespace fathom {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class TokenComplaintsTest : public testing::Test {
 protected:
  ~TokenComplaintsTest() override {
    ::close(log_pipe_[0]);
    ::close(log_pipe_[1]);
  }

  // The log lines of one more request.
  std::string Miss(std::string_view model, TokenFailure reason) {
    complaints_.Miss(model, reason, now_);
    return Said();
  }
  // The log lines since the last call.
  std::string Said() {
    std::array<char, 8192> room;
    CHECK(::write(log_pipe_[1], "\n", 1) == 1);
    const ssize_t n = ::read(log_pipe_[0], room.data(), room.size());
    CHECK(n > 0);
    return std::string(room.data(), static_cast<size_t>(n) - 1);
  }

  static std::array<int, 2> OpenPipe() {
    std::array<int, 2> ends{};
    CHECK(::pipe(ends.data()) == 0);
    return ends;
  }

  const std::array<int, 2> log_pipe_ = OpenPipe();
  Log log_{log_pipe_[1]};
  TokenComplaints complaints_{log_};
  TimePoint now_{std::chrono::seconds(1000)};
};

TEST_F(TokenComplaintsTest, NameTheReasonAndTheRemedy) {
  EXPECT_THAT(
      Miss("m", TokenFailure::kTimeout),
      AllOf(HasSubstr("WARN"), HasSubstr("routed without their tokens"), HasSubstr("model=m"),
            HasSubstr("reason=timeout"), HasSubstr("--tokenize-timeout")));
  EXPECT_THAT(Miss("m", TokenFailure::kRefused),
              AllOf(HasSubstr("reason=refused"), HasSubstr("--model-path")));
  EXPECT_THAT(Miss("m", TokenFailure::kUnsupported),
              AllOf(HasSubstr("reason=unsupported"), HasSubstr("--model-path")));
  EXPECT_THAT(Miss("m", TokenFailure::kError),
              AllOf(HasSubstr("reason=error"), HasSubstr("api_key_env")));
  EXPECT_THAT(Miss("m", TokenFailure::kOverload), HasSubstr("reason=overload"));
}

TEST_F(TokenComplaintsTest, AreRepeatedAfterAWhileWithHowManyThereWere) {
  EXPECT_THAT(Miss("m", TokenFailure::kError), HasSubstr("requests=1"));
  for (int i = 0; i < 40; ++i) EXPECT_EQ(Miss("m", TokenFailure::kError), "");
  now_ += TokenComplaints::kQuiet - Duration(1);
  EXPECT_EQ(Miss("m", TokenFailure::kError), "");
  now_ += Duration(1);
  EXPECT_THAT(Miss("m", TokenFailure::kError), HasSubstr("requests=42"));
  EXPECT_EQ(Miss("m", TokenFailure::kError), "");
}

TEST_F(TokenComplaintsTest, AreMadeForEachModelAndReason) {
  EXPECT_NE(Miss("m", TokenFailure::kError), "");
  EXPECT_NE(Miss("n", TokenFailure::kError), "");
  EXPECT_NE(Miss("m", TokenFailure::kTimeout), "");
  EXPECT_EQ(Miss("n", TokenFailure::kError), "");
}

TEST_F(TokenComplaintsTest, AreBoundedHoweverManyModelsClientsInvent) {
  size_t lines = 0;
  std::string last;
  for (size_t i = 0; i < 4 * TokenComplaints::kMost; ++i) {
    const std::string line = Miss("invented-" + std::to_string(i), TokenFailure::kError);
    if (!line.empty()) last = line;
    lines += static_cast<size_t>(std::ranges::count(line, '\n'));
  }
  EXPECT_EQ(lines, TokenComplaints::kMost + 1);
  EXPECT_THAT(last, HasSubstr(TokenComplaints::kOthers));
  now_ += TokenComplaints::kQuiet;
  EXPECT_THAT(Miss("real", TokenFailure::kError), HasSubstr("model=real"))
      << "what has been quiet long enough makes room";
}

TEST_F(TokenComplaintsTest, DoNotRepeatNamesThatAreTooLong) {
  const std::string name(TokenComplaints::kLongestName + 1, 'x');
  EXPECT_THAT(Miss(name, TokenFailure::kError),
              AllOf(HasSubstr(TokenComplaints::kOthers), Not(HasSubstr("xxx"))));
}

TEST_F(TokenComplaintsTest, SayWhatIsWrongWithTheFiles) {
  complaints_.Miss("m", Inexact::kTemplateFailed, "line 3: no such thing", now_);
  EXPECT_THAT(Said(), AllOf(HasSubstr("chat template"), HasSubstr("line 3: no such thing")));
  complaints_.Miss("m", Inexact::kTemplateFailed, "line 3: no such thing", now_);
  EXPECT_EQ(Said(), "");
}

TEST_F(TokenComplaintsTest, AreSilentAboutWhatIsInOrder) {
  for (const Inexact why : {Inexact::kImage, Inexact::kTemplateRefused, Inexact::kNotAPrompt}) {
    complaints_.Miss("m", why, "", now_);
    EXPECT_EQ(Said(), "") << Name(why);
  }
}

TEST_F(TokenComplaintsTest, SayThatUserTextDidNotStayText) {
  complaints_.NotLiteral("m", now_);
  EXPECT_THAT(Said(), AllOf(HasSubstr("--literal-user-text"), HasSubstr("model=m")));
}

}  // namespace
}  // namespace fathom
