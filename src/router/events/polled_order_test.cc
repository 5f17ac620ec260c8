#include "router/events/polled_order.h"

#include <gtest/gtest.h>

#include <string>

namespace fathom {
namespace {

using std::chrono::seconds;
using What = PolledOrder::Step::What;

constexpr TimePoint kStart{seconds(100)};

std::vector<TrtllmEvent> Events(uint64_t from, uint64_t to, uint32_t rank = 0) {
  std::vector<TrtllmEvent> events;
  for (uint64_t id = from; id < to; ++id) events.push_back({.id = id, .rank = rank});
  return events;
}

PolledView View(uint64_t process, uint64_t next) { return {process, {{0, next}}}; }

// "5 6 gap3 9": what is to be done.
std::string Done(PolledOrder& order) {
  std::string text;
  while (const auto step = order.Next()) {
    if (!text.empty()) text += ' ';
    if (step->what == What::kRestart) {
      text += "restart";
    } else if (step->what == What::kGap) {
      text += "gap" + std::to_string(step->lost);
    } else {
      text += std::to_string(step->event.id);
    }
  }
  return text;
}

// Our own poll, of which nothing else happens in the meantime.
void Poll(PolledOrder& order, std::vector<TrtllmEvent> events, TimePoint now = kStart) {
  const PolledView sent = order.view();
  EXPECT_TRUE(order.TakeOwn(sent, std::move(events), now));
}

TEST(PolledOrder, OneRouterAppliesWhatItPolls) {
  PolledOrder order;
  Poll(order, Events(0, 3));
  Poll(order, {});
  Poll(order, Events(3, 5));
  EXPECT_EQ(Done(order), "0 1 2 3 4");
  EXPECT_EQ(order.view(), View(1, 5));
  EXPECT_FALSE(order.waiting());
}

TEST(PolledOrder, OneRouterThatStartsLateDoesNotWait) {
  PolledOrder order;
  Poll(order, Events(7, 9));
  order.Expire(kStart, Duration::zero());
  EXPECT_EQ(Done(order), "7 8");
}

TEST(PolledOrder, AGapOfOneRouterIsOneAtOnce) {
  PolledOrder order;
  Poll(order, Events(0, 2));
  Poll(order, Events(5, 6));
  order.Expire(kStart, Duration::zero());
  EXPECT_EQ(Done(order), "0 1 gap3 5");
}

TEST(PolledOrder, SmallerIdsOfALaterPollAreAnotherProcess) {
  PolledOrder order;
  Poll(order, Events(0, 9));
  Poll(order, Events(0, 2));
  EXPECT_EQ(Done(order), "restart 0 1");
  EXPECT_EQ(order.view(), View(2, 2));
}

TEST(PolledOrder, EventsOfOthersFillTheHole) {
  PolledOrder order;
  Poll(order, Events(0, 2));
  Poll(order, Events(4, 6));
  order.Expire(kStart + seconds(1), PolledOrder::kPatience);
  EXPECT_EQ(Done(order), "0 1");
  EXPECT_TRUE(order.waiting());
  order.TakeHeard(View(1, 4), Events(2, 4), kStart + seconds(1));
  EXPECT_EQ(Done(order), "2 3 4 5");
  EXPECT_FALSE(order.waiting());
}

TEST(PolledOrder, AfterThePatienceTheHoleIsAGapAndLateEventsAreLeftOut) {
  PolledOrder order;
  Poll(order, Events(0, 2));
  order.TakeHeard(View(1, 6), Events(4, 6), kStart);
  order.Expire(kStart + PolledOrder::kPatience, PolledOrder::kPatience);
  EXPECT_EQ(Done(order), "0 1 gap2 4 5");
  order.TakeHeard(View(1, 4), Events(2, 4), kStart + seconds(3));
  EXPECT_EQ(Done(order), "");
  EXPECT_FALSE(order.TakeContradiction());
}

TEST(PolledOrder, EachHoleIsWaitedForFromItsOwnTime) {
  PolledOrder order;
  Poll(order, Events(0, 1));
  order.TakeHeard(View(1, 3), Events(2, 3), kStart);
  order.TakeHeard(View(1, 5), Events(4, 5), kStart + seconds(1));
  order.Expire(kStart + seconds(2), PolledOrder::kPatience);
  EXPECT_EQ(Done(order), "0 gap1 2");
  order.Expire(kStart + seconds(3), PolledOrder::kPatience);
  EXPECT_EQ(Done(order), "gap1 4");
}

TEST(PolledOrder, AViewThatIsAheadShowsALostAnswer) {
  PolledOrder order;
  Poll(order, Events(0, 2));
  for (int second = 0; second < 2; ++second) {
    order.TakeHeard(View(1, 6 + static_cast<uint64_t>(second)), {}, kStart + seconds(second));
  }
  order.Expire(kStart + PolledOrder::kPatience, PolledOrder::kPatience);
  EXPECT_EQ(Done(order), "0 1 gap5");
  order.TakeHeard(View(1, 8), Events(7, 8), kStart + seconds(3));
  EXPECT_EQ(Done(order), "7");
}

TEST(PolledOrder, ANewcomerBeginsBehindTheViewOfOthers) {
  PolledOrder order(View(3, 50), kStart);
  EXPECT_TRUE(order.waiting());
  order.Expire(kStart + PolledOrder::kPatience, PolledOrder::kPatience);
  order.TakeHeard(View(3, 52), Events(50, 52), kStart + seconds(3));
  EXPECT_EQ(Done(order), "50 51");
}

TEST(PolledOrder, ANewcomerThatPollsNoticesARestart) {
  PolledOrder order(View(3, 50), kStart);
  Poll(order, Events(0, 2));
  EXPECT_EQ(Done(order), "restart 0 1");
  EXPECT_EQ(order.view(), View(4, 2));
}

TEST(PolledOrder, ALaterProcessOfOthersIsAdoptedAndAnEarlierOneLeftOut) {
  PolledOrder order;
  Poll(order, Events(0, 9));
  order.TakeHeard(View(2, 3), Events(0, 3), kStart);
  EXPECT_EQ(Done(order), "restart 0 1 2");
  order.TakeHeard(View(1, 12), Events(9, 12), kStart);
  EXPECT_EQ(Done(order), "");
  EXPECT_EQ(order.view(), View(2, 3));
}

TEST(PolledOrder, AnAbsurdCountOfProcessesIsNotAdopted) {
  PolledOrder order;
  Poll(order, Events(0, 2));
  order.TakeHeard(View(uint64_t{1} << 47, 3), Events(0, 3), kStart);
  EXPECT_EQ(order.view(), View(1, 2));
}

TEST(PolledOrder, TwoThatNoticeTheSameRestartAgree) {
  PolledOrder a;
  PolledOrder b;
  Poll(a, Events(0, 9));
  b.TakeHeard(a.view(), Events(0, 9), kStart);
  (void)Done(a);
  (void)Done(b);
  const PolledView sent = b.view();
  Poll(a, Events(0, 2));
  EXPECT_TRUE(b.TakeOwn(sent, Events(2, 4), kStart));
  a.TakeHeard(b.view(), Events(2, 4), kStart);
  b.TakeHeard(a.view(), Events(0, 2), kStart);
  EXPECT_EQ(Done(a), "restart 0 1 2 3");
  EXPECT_EQ(Done(b), "restart 0 1 2 3");
  EXPECT_EQ(a.view(), b.view());
}

TEST(PolledOrder, AnAnswerOnItsWayDuringARestartIsTakenIfItIsCertainlyNew) {
  PolledOrder order;
  Poll(order, Events(0, 9));
  const PolledView sent = order.view();
  order.TakeHeard(View(2, 2), Events(0, 2), kStart);
  EXPECT_TRUE(order.TakeOwn(sent, Events(2, 3), kStart));
  EXPECT_EQ(Done(order), "restart 0 1 2");
}

TEST(PolledOrder, AnAnswerOnItsWayDuringARestartIsLeftOutIfItMayBeOld) {
  PolledOrder order;
  Poll(order, Events(0, 9));
  const PolledView sent = order.view();
  order.TakeHeard(View(2, 2), Events(0, 2), kStart);
  EXPECT_FALSE(order.TakeOwn(sent, Events(9, 11), kStart));
  EXPECT_EQ(Done(order), "restart 0 1");
}

TEST(PolledOrder, AnIdThatComesTwiceIsOfAnotherProcess) {
  PolledOrder order;
  Poll(order, Events(0, 9));
  (void)Done(order);
  order.TakeHeard(View(1, 9), Events(3, 5), kStart);
  EXPECT_TRUE(order.TakeContradiction());
  EXPECT_FALSE(order.TakeContradiction());
  EXPECT_EQ(Done(order), "restart");
  EXPECT_EQ(order.view(), (PolledView{2, {}}));
}

TEST(PolledOrder, AnIdThatIsHeldTwiceIsOfAnotherProcess) {
  PolledOrder order;
  Poll(order, Events(0, 1));
  order.TakeHeard(View(1, 6), Events(5, 6), kStart);
  order.TakeHeard(View(1, 6), Events(5, 6), kStart);
  EXPECT_TRUE(order.TakeContradiction());
}

TEST(PolledOrder, OldHolesAreForgottenWithoutAContradiction) {
  PolledOrder order;
  Poll(order, Events(0, 1));
  for (uint64_t id = 2; id < 4 * PolledOrder::kMostSkipped; id += 2) {
    order.TakeHeard(View(1, id + 1), Events(id, id + 1), kStart);
    order.Expire(kStart, Duration::zero());
  }
  (void)Done(order);
  order.TakeHeard(View(1, 2), Events(1, 2), kStart);  // the first hole
  EXPECT_FALSE(order.TakeContradiction());
  const uint64_t last = 4 * PolledOrder::kMostSkipped - 2;
  order.TakeHeard(View(1, 2), Events(last, last + 1), kStart);
  EXPECT_TRUE(order.TakeContradiction());
}

// All that knew the engine's former process have left but one, which does not poll.
TEST(PolledOrder, ARouterThatCountsProcessesFromOneAgainIsCorrected) {
  PolledOrder old(View(1, 50), kStart);
  PolledOrder fresh;
  Poll(fresh, Events(0, 5));
  old.TakeHeard(fresh.view(), Events(0, 5), kStart);
  EXPECT_TRUE(old.KnowsMoreThan(fresh.view()));
  EXPECT_FALSE(fresh.KnowsMoreThan(old.view()));
  fresh.TakeHeard(old.view(), {}, kStart);
  Poll(fresh, Events(5, 6));
  EXPECT_EQ(fresh.view().process, 2u);
  old.TakeHeard(fresh.view(), Events(5, 6), kStart);
  EXPECT_EQ(old.view(), fresh.view());
}

TEST(PolledOrder, RanksAreIndependent) {
  PolledOrder order;
  Poll(order, Events(0, 1, 0));
  Poll(order, Events(4, 5, 1));
  Poll(order, Events(1, 2, 0));
  EXPECT_EQ(Done(order), "0 1");
  EXPECT_EQ(order.next(0), 2u);
  EXPECT_EQ(order.next(1), std::nullopt);
}

TEST(PolledOrder, HeldEventsAreBoundedInBytes) {
  PolledOrder order;
  Poll(order, Events(0, 1));
  const size_t tokens = 1 << 20;
  const size_t enough = 2 * PolledOrder::kMostHeldBytes / (tokens * sizeof(TokenId));
  for (uint64_t id = 2; id < 2 + enough; ++id) {
    TrtllmStored stored;
    stored.blocks.push_back({.hash = id, .tokens = std::vector<TokenId>(tokens)});
    std::vector<TrtllmEvent> events(1);
    events[0].id = id;
    events[0].data = std::move(stored);
    order.TakeHeard(View(1, id + 1), std::move(events), kStart);
  }
  EXPECT_EQ(order.next(0), 2 + enough);  // they were not waited for
}

TEST(PolledOrder, HostileNumbersDoNoHarm) {
  PolledOrder order;
  Poll(order, Events(0, 2));
  order.TakeHeard({UINT64_MAX, {{0, 5}}}, Events(2, 3), kStart);
  order.TakeHeard({0, {{0, 5}}}, Events(2, 3), kStart);
  std::vector<TrtllmEvent> last(1);
  last[0].id = UINT64_MAX;
  order.TakeHeard(View(1, 2), std::move(last), kStart);
  for (uint32_t rank = 0; rank < 2 * PolledOrder::kMostRanks; ++rank) {
    order.TakeHeard({1, {{rank, 1}}}, Events(0, 1, rank + 1), kStart);
  }
  EXPECT_LE(order.view().next.size(), PolledOrder::kMostRanks);
  EXPECT_EQ(order.view().process, 1u);
}

}  // namespace
}  // namespace fathom
