#include "net/resolver.h"

#include <gtest/gtest.h>

#include "net/loop_thread.h"

namespace fathom {
namespace {

using Addresses = Result<std::vector<Address>>;

Task<void> ResolveInto(Resolver& resolver, Loop& loop, std::string host, uint16_t port,
                       Addresses& out) {
  auto resolving = resolver.Resolve(loop, std::move(host), port);
  out = co_await resolving;
}

Addresses ResolveNow(Resolver& resolver, const std::string& host, uint16_t port) {
  Loop loop;
  Addresses out = Fail(Blame::kCaller, "never ran");
  const auto start = [&] { return ResolveInto(resolver, loop, host, port, out); };
  RunToEnd(loop, start);
  return out;
}

TEST(Resolver, AnswersNumericAddressesWithoutAsking) {
  Resolver resolver;
  Loop loop;  // never runs
  Addresses out = Fail(Blame::kCaller, "never ran");
  Spawn(ResolveInto(resolver, loop, "192.0.2.1", 81, out));
  ASSERT_TRUE(out);
  ASSERT_EQ(out->size(), 1u);
  EXPECT_EQ(out->front().ToString(), "192.0.2.1:81");
}

TEST(Resolver, FindsTheLocalHost) {
  Resolver resolver;
  const auto found = ResolveNow(resolver, "localhost", 4242);
  ASSERT_TRUE(found) << found.error().what;
  ASSERT_FALSE(found->empty());
  for (const Address& address : *found) {
    EXPECT_TRUE(address.loopback()) << address.ToString();
    EXPECT_EQ(address.port(), 4242);
  }
}

TEST(Resolver, GivesARememberedAnswerThePortOfTheQuestion) {
  Resolver resolver;
  ASSERT_TRUE(ResolveNow(resolver, "localhost", 1));
  const auto again = ResolveNow(resolver, "localhost", 2);
  ASSERT_TRUE(again);
  for (const Address& address : *again) EXPECT_EQ(address.port(), 2);
}

TEST(Resolver, NamesTheNameItCannotFind) {
  Resolver resolver;
  const auto found = ResolveNow(resolver, "no such host", 1);  // no name server is asked for this
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().blame, Blame::kPeer);
  EXPECT_NE(found.error().what.find("'no such host'"), std::string::npos) << found.error().what;
}

Task<void> AskInto(Resolver& resolver, Loop& loop, std::string host, Addresses& out) {
  auto asking = resolver.Ask(loop, std::move(host), 7);
  out = co_await asking;
}

Addresses AskNow(Resolver& resolver, const std::string& host) {
  Loop loop;
  Addresses out = Fail(Blame::kCaller, "never ran");
  const auto start = [&] { return AskInto(resolver, loop, host, out); };
  RunToEnd(loop, start);
  return out;
}

TEST(Resolver, AsksForANameAnewAndForAnAddressNever) {
  Resolver resolver;
  for (int i = 0; i < 2; ++i) {
    const auto found = AskNow(resolver, "localhost");
    ASSERT_TRUE(found) << found.error().what;
    ASSERT_FALSE(found->empty());
    EXPECT_TRUE(found->front().loopback());
    EXPECT_EQ(found->front().port(), 7);
  }
  EXPECT_FALSE(AskNow(resolver, "no such host"));
  resolver.Stop();
  const auto numeric = AskNow(resolver, "192.0.2.1");
  ASSERT_TRUE(numeric);
  EXPECT_EQ(numeric->front().ToString(), "192.0.2.1:7");
}

TEST(Resolver, AnswersSeveralLoopsAtOnce) {
  Resolver resolver;
  std::vector<std::unique_ptr<LoopThread>> threads;
  for (int i = 0; i < 3; ++i) threads.push_back(std::make_unique<LoopThread>());
  std::vector<std::thread> callers;
  std::atomic<int> found{0};
  for (const auto& thread : threads) {
    callers.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        Addresses out = Fail(Blame::kCaller, "never ran");
        thread->Complete(
            [&] { return ResolveInto(resolver, thread->loop(), "localhost", 1, out); });
        found += out.has_value();
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(found, 60);
}

}  // namespace
}  // namespace fathom
