#include "lab/demo/token_window.h"

#include <gtest/gtest.h>

namespace fathom {
namespace {

using std::chrono::seconds;

TEST(TokenWindow, CountsEverythingUntilItIsFull) {
  TokenWindow window;
  EXPECT_EQ(window.Lately({.prompt = 10, .cached = 5}).prompt, 10u);
  window.Remember({.prompt = 10, .cached = 5}, seconds(1));
  EXPECT_EQ(window.Lately({.prompt = 30, .cached = 15}).prompt, 30u);
}

TEST(TokenWindow, ForgetsWhatIsOlderThanTenSeconds) {
  TokenWindow window;
  // A hundred tokens per second, all of them found until second 20, none afterwards.
  TokenCounts counts;
  for (int second = 1; second <= 40; ++second) {
    counts += {.prompt = 100, .cached = second <= 20 ? 100u : 0u, .recomputed = 7};
    const TokenCounts lately = window.Lately(counts);
    window.Remember(counts, seconds(second));
    if (second <= 20) {
      EXPECT_EQ(lately.reused(), 1);
    }
    if (second > 31) {
      EXPECT_EQ(lately.reused(), 0) << second;
    }
    if (second > 12) {
      EXPECT_LE(lately.recomputed, 77u);
    }
  }
  EXPECT_LE(window.Lately(counts).prompt, 1000u);
}

TEST(TokenCounts, HasReusedNothingOfNothing) { EXPECT_EQ(TokenCounts().reused(), 0); }

}  // namespace
}  // namespace fathom
