#include "io/net/resolver.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "io/net/name_cache.h"
#include "testing/becomes.h"
#include "testing/dns_server.h"
#include "testing/loop_thread.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using Manner = DnsServer::Manner;

// Long enough for every answer that comes, and no test waits for it.
constexpr Duration kPlenty = seconds(8);
constexpr Duration kShort = milliseconds(150);

class ResolverTest : public testing::Test {
 protected:
  ResolverTest() {
    Write("resolv.conf", "nameserver 192.0.2.1\n");
    Write("hosts", "");
    resolver_.emplace(Options({server_.address()}));
  }
  ~ResolverTest() override {
    resolver_.reset();
    std::filesystem::remove_all(folder_);
    ::close(log_file_);
  }

  ResolverOptions Options(std::vector<Address> servers) {
    return {.servers = std::move(servers),
            .resolv_conf = folder_ + "/resolv.conf",
            .hosts = folder_ + "/hosts",
            .log = &log_};
  }
  void Write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/" + file, std::ios::trunc) << text;
  }

  struct Outcome {
    NetCause cause = NetCause::kOther;
    std::string what;
    std::vector<std::string> addresses;
  };
  template <class T>
  static Outcome OutcomeOf(const NetResult<T>& result, const std::vector<Address>& addresses) {
    if (!result) return {result.error().cause, result.error().what, {}};
    Outcome out;
    for (const Address& address : addresses) out.addresses.push_back(address.ToString());
    return out;
  }
  Outcome Resolve(const std::string& host, Duration patience = kPlenty) {
    Loop loop;
    const auto found =
        RunToEnd(loop, [&] { return resolver_->Resolve(loop, host, 80, loop.now() + patience); });
    return OutcomeOf(found, found ? *found : std::vector<Address>{});
  }
  Outcome Ask(const std::string& host) {
    Loop loop;
    const auto found = RunToEnd(loop, [&] { return resolver_->Ask(loop, host, 80); });
    return OutcomeOf(found, found ? found->addresses : std::vector<Address>{});
  }
  std::string Logged() const {
    std::string text(1 << 16, '\0');
    text.resize(static_cast<size_t>(pread(log_file_, text.data(), text.size(), 0)));
    return text;
  }

  const std::string folder_ = testing::TempDir() + "resolver_test." + std::to_string(::getpid());
  const int log_file_ = memfd_create("log", 0);
  Log log_{log_file_, LogLevel::kInfo};
  DnsServer server_;
  std::optional<Resolver> resolver_;
};

TEST_F(ResolverTest, AnswersWithoutAskingWhatNeedsNoLookup) {
  Loop loop;  // never runs
  const auto at_once = [&](const std::string& host) {
    auto resolving = resolver_->Resolve(loop, host, 81, loop.now());
    EXPECT_TRUE(resolving.await_ready()) << host;
    return resolving.await_resume();
  };
  EXPECT_EQ(at_once("192.0.2.1")->front().ToString(), "192.0.2.1:81");
  EXPECT_EQ(at_once("fd00::1")->front().ToString(), "[fd00::1]:81");
  for (const std::string name : {"localhost", "LOCALHOST.", "engine.localhost"}) {
    const auto local = at_once(name);
    ASSERT_TRUE(local) << name;
    for (const Address& address : *local) EXPECT_TRUE(address.loopback()) << address.ToString();
  }
  const auto refused = at_once("no such host");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().cause, NetCause::kBadName);
  EXPECT_THAT(refused.error().what, HasSubstr("'no such host'"));
  EXPECT_EQ(at_once(std::string(100'000, 'x')).error().cause, NetCause::kBadName);
  EXPECT_LT(at_once(std::string(100'000, 'x')).error().what.size(), 400u);
}

TEST_F(ResolverTest, FindsTheAddressesOfAName) {
  server_.Set("engine.test", {.addresses = {"127.0.0.2", "127.0.0.3", "fd00::1"}});
  EXPECT_THAT(Resolve("Engine.TEST").addresses,
              ElementsAre("127.0.0.2:80", "127.0.0.3:80", "[fd00::1]:80"));
  EXPECT_THAT(Resolve("engine.test").addresses.size(), 3u);
  EXPECT_EQ(server_.asked("engine.test") + server_.asked("Engine.TEST"), 1) << "then it is known";
}

TEST_F(ResolverTest, SaysWhyANameHasNoAddress) {
  server_.Set("empty.test", {});
  server_.Set("failing.test", {.manner = Manner::kFail});
  server_.Set("refusing.test", {.manner = Manner::kRefuse});
  server_.Set("unreadable.test", {.addresses = {"127.0.0.2"}, .manner = Manner::kUnreadable});
  server_.Set("silent.test", {.manner = Manner::kSilent});
  EXPECT_EQ(Resolve("absent.test").cause, NetCause::kNoSuchName);
  EXPECT_EQ(Resolve("empty.test").cause, NetCause::kNoSuchName);
  EXPECT_EQ(Resolve("failing.test").cause, NetCause::kNameServer);
  EXPECT_EQ(Resolve("refusing.test").cause, NetCause::kNameServer);
  EXPECT_EQ(Resolve("unreadable.test").cause, NetCause::kNameServer);
  const Outcome silent = Resolve("silent.test", kShort);
  EXPECT_EQ(silent.cause, NetCause::kNameTimeout);
  EXPECT_THAT(silent.what, HasSubstr("'silent.test'"));
}

TEST_F(ResolverTest, IsNotMisledByWrongMessages) {
  server_.Set("noisy.test", {.addresses = {"127.0.0.2"}, .manner = Manner::kNoise});
  server_.Set("forged.test", {.addresses = {"127.0.0.3"}, .manner = Manner::kForgedFirst});
  EXPECT_THAT(Resolve("noisy.test").addresses, ElementsAre("127.0.0.2:80"));
  EXPECT_THAT(Resolve("forged.test").addresses, ElementsAre("127.0.0.3:80"));
}

TEST_F(ResolverTest, AsksOverTcpForALongAnswer) {
  DnsServer::Name many{.manner = Manner::kTruncated};
  for (int i = 0; i < 600; ++i) {
    many.addresses.push_back("10.1." + std::to_string(i / 200) + "." + std::to_string(i % 200));
  }
  server_.Set("many.test", many);
  EXPECT_EQ(Resolve("many.test").addresses.size(), 600u);
  EXPECT_GT(server_.asked_over_tcp(), 0);
}

TEST_F(ResolverTest, UsesABoundedNumberOfAddresses) {
  DnsServer::Name many{.manner = Manner::kTruncated};
  for (int i = 0; i < 3000; ++i) {
    many.addresses.push_back("10.1." + std::to_string(i / 200) + "." + std::to_string(i % 200));
  }
  server_.Set("many.test", many);
  const Outcome found = Resolve("many.test");
  EXPECT_EQ(found.what, "");
  EXPECT_EQ(found.addresses.size(), static_cast<size_t>(DnsChannel::kMaxAddresses));
}

TEST_F(ResolverTest, DoesNotLetOneNameWaitForAnother) {
  server_.Set("silent.test", {.manner = Manner::kSilent});
  server_.Set("engine.test", {.addresses = {"127.0.0.2"}});
  LoopThread other;
  std::promise<Outcome> late;
  other.loop().Post([&] {
    const auto wait = [](Resolver& resolver, Loop& loop, std::promise<Outcome>& out) -> Task<void> {
      auto asking = resolver.Ask(loop, "silent.test", 80);
      const auto found = co_await asking;
      out.set_value(OutcomeOf(found, {}));
    };
    Spawn(wait(*resolver_, other.loop(), late));
  });
  ASSERT_TRUE(Becomes([&] { return server_.asked("silent.test") > 0; }));
  auto ended = late.get_future();
  EXPECT_THAT(Resolve("engine.test").addresses, ElementsAre("127.0.0.2:80"));
  EXPECT_EQ(Resolve("absent.test").cause, NetCause::kNoSuchName);
  EXPECT_EQ(ended.wait_for(seconds(0)), std::future_status::timeout) << "the first still waits";
  server_.Set("silent.test", {.addresses = {"127.0.0.9"}});  // answers when asked again
  EXPECT_EQ(ended.get().cause, NetCause::kOther);
}

TEST_F(ResolverTest, AsksOnceForMany) {
  server_.Set("slow.test", {.addresses = {"127.0.0.2"}, .delay = milliseconds(100)});
  std::vector<std::unique_ptr<LoopThread>> threads;
  for (int i = 0; i < 3; ++i) threads.push_back(std::make_unique<LoopThread>());
  std::atomic<int> found{0};
  const auto ask = [](Resolver& resolver, Loop& loop, std::atomic<int>& n) -> Task<void> {
    auto resolving = resolver.Resolve(loop, "slow.test", 80, loop.now() + kPlenty);
    const auto addresses = co_await resolving;
    n += addresses.has_value();
  };
  for (const auto& thread : threads) {
    thread->loop().Post([&, loop = &thread->loop()] {
      for (int i = 0; i < 100; ++i) Spawn(ask(*resolver_, *loop, found));
    });
  }
  EXPECT_TRUE(Becomes([&] { return found == 300; })) << found;
  EXPECT_EQ(server_.asked("slow.test"), 1);
}

TEST_F(ResolverTest, LetsAnAskerLeave) {
  server_.Set("silent.test", {.manner = Manner::kSilent});
  Loop loop;
  Cancellation cancellation;
  loop.Post([&] { cancellation.Cancel(); });
  const auto left = RunToEnd(
      loop, [&] { return resolver_->Resolve(loop, "silent.test", 80, kNever, &cancellation); });
  ASSERT_FALSE(left);
  EXPECT_EQ(left.error().cause, NetCause::kCancelled);
  Loop another;
  const auto refused = RunToEnd(another, [&] {
    return resolver_->Resolve(another, "silent.test", 80, kNever, &cancellation);
  });
  EXPECT_EQ(refused.error().cause, NetCause::kCancelled) << "at once";
}

TEST_F(ResolverTest, DoesNotWaitForASilentFamily) {
  server_.Set("half.test", {.addresses = {"127.0.0.2"}, .manner = Manner::kSilentAboutIpv6});
  EXPECT_THAT(Resolve("half.test", seconds(2)).addresses, ElementsAre("127.0.0.2:80"));
}

TEST_F(ResolverTest, FollowsANameThatChanges) {
  server_.Set("engine.test", {.addresses = {"127.0.0.2"}, .ttl = 1});
  EXPECT_THAT(Resolve("engine.test").addresses, ElementsAre("127.0.0.2:80"));
  server_.Set("engine.test", {.addresses = {"127.0.0.3"}, .ttl = 1});
  EXPECT_THAT(Ask("engine.test").addresses, ElementsAre("127.0.0.3:80")) << "not from the cache";
  EXPECT_THAT(Resolve("engine.test").addresses, ElementsAre("127.0.0.3:80"));
  server_.Set("engine.test", {.addresses = {"127.0.0.4"}, .ttl = 1});
  EXPECT_TRUE(Becomes([&] { return Resolve("engine.test").addresses[0] == "127.0.0.4:80"; }));
  server_.Unset("engine.test");
  EXPECT_TRUE(Becomes([&] { return Resolve("engine.test").cause == NetCause::kNoSuchName; }));
}

TEST_F(ResolverTest, UsesAStaleAnswerWhileTheServerIsAway) {
  server_.Set("engine.test", {.addresses = {"127.0.0.2"}, .ttl = 1});
  EXPECT_THAT(Resolve("engine.test").addresses, ElementsAre("127.0.0.2:80"));
  server_.Set("engine.test", {.manner = Manner::kSilent});
  ASSERT_TRUE(Becomes([&] {
    EXPECT_THAT(Resolve("engine.test").addresses, ElementsAre("127.0.0.2:80"));
    return server_.asked("engine.test") > 1;
  })) << "it expires and is asked for";
  EXPECT_TRUE(Becomes([&] {
    EXPECT_THAT(Resolve("engine.test").addresses, ElementsAre("127.0.0.2:80"));
    return !Logged().empty();
  }));
  for (int i = 0; i < 10; ++i) Resolve("engine.test");
  const std::string said = Logged();
  EXPECT_THAT(said, HasSubstr("the last known addresses are used"));
  EXPECT_EQ(said.find('\n'), said.size() - 1) << "once: " << said;
  server_.Set("engine.test", {.addresses = {"127.0.0.3"}, .ttl = 1});
  EXPECT_TRUE(Becomes([&] { return Resolve("engine.test").addresses[0] == "127.0.0.3:80"; }));
  EXPECT_TRUE(Becomes([&] { return Logged().contains("DNS lookup works again"); }));
}

TEST_F(ResolverTest, SaysThatALookupWorksAgainWhenOneFamilyAnswers) {
  server_.Set("engine.test", {.addresses = {"127.0.0.2"}, .ttl = 1});
  EXPECT_THAT(Resolve("engine.test").addresses, ElementsAre("127.0.0.2:80"));
  server_.Set("engine.test", {.manner = Manner::kFail});
  EXPECT_TRUE(Becomes([&] {
    Resolve("engine.test");
    return Logged().contains("the last known addresses are used");
  }));
  server_.Set("engine.test", {.addresses = {"127.0.0.3"}, .manner = Manner::kSilentAboutIpv6});
  EXPECT_TRUE(Becomes([&] { return Resolve("engine.test").addresses[0] == "127.0.0.3:80"; }));
  EXPECT_TRUE(Becomes([&] { return Logged().contains("DNS lookup works again"); }));
}

TEST_F(ResolverTest, UsesAStaleAnswerWhenTheServerFails) {
  server_.Set("engine.test", {.addresses = {"127.0.0.2"}, .ttl = 1});
  EXPECT_THAT(Resolve("engine.test").addresses, ElementsAre("127.0.0.2:80"));
  server_.Set("engine.test", {.manner = Manner::kFail});
  EXPECT_EQ(Ask("engine.test").cause, NetCause::kNameServer);
  EXPECT_THAT(Resolve("engine.test").addresses, ElementsAre("127.0.0.2:80"));
}

TEST_F(ResolverTest, RemembersAFailureBriefly) {
  server_.Set("failing.test", {.manner = Manner::kFail});
  const TimePoint begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Resolve("failing.test").cause, NetCause::kNameServer);
  const Duration took = std::chrono::steady_clock::now() - begun;
  EXPECT_LE(server_.asked("failing.test"), 1 + took / NameCache::kFailureFor);
}

TEST_F(ResolverTest, HonoursTheHostsFileAndItsChanges) {
  server_.Set("engine.test", {.addresses = {"127.0.0.9"}});
  Write("hosts", "127.0.0.2 engine.test\n");
  EXPECT_THAT(Resolve("engine.test").addresses, ElementsAre("127.0.0.2:80"));
  EXPECT_THAT(Resolve("Engine.test.").addresses, ElementsAre("127.0.0.2:80"));
  Write("hosts", "127.0.0.3 engine.test\n127.0.0.4 engine.test\n");
  EXPECT_THAT(Ask("engine.test").addresses, ElementsAre("127.0.0.3:80", "127.0.0.4:80"));
  EXPECT_EQ(server_.asked("engine.test"), 0);
  Write("hosts", "\n");
  EXPECT_TRUE(Becomes([&] { return Resolve("engine.test").addresses[0] == "127.0.0.9:80"; }));
}

TEST_F(ResolverTest, HonoursResolvConfAndItsChanges) {
  server_.Set("engine.prod.test", {.addresses = {"127.0.0.2"}});
  server_.Set("engine.other.test", {.addresses = {"127.0.0.3"}});
  Write("resolv.conf", "search nowhere.test prod.test\noptions ndots:2\n");
  EXPECT_THAT(Resolve("engine").addresses, ElementsAre("127.0.0.2:80"));
  EXPECT_EQ(server_.asked("engine.nowhere.test"), 1);
  Write("resolv.conf", "search other.test\n");
  EXPECT_THAT(Ask("engine").addresses, ElementsAre("127.0.0.3:80"));
}

TEST_F(ResolverTest, AsksTheNewServersWhatTheOldOnesDoNotAnswer) {
  server_.Set("engine.test", {.manner = Manner::kSilent});
  Write("resolv.conf", "search old.test\n");
  LoopThread other;
  std::promise<Outcome> out;
  const auto wait = [](Resolver& resolver, Loop& loop, std::promise<Outcome>& to) -> Task<void> {
    auto asking = resolver.Ask(loop, "engine.test", 80);
    const auto found = co_await asking;
    to.set_value(OutcomeOf(found, found ? found->addresses : std::vector<Address>{}));
  };
  other.loop().Post([&] { Spawn(wait(*resolver_, other.loop(), out)); });
  ASSERT_TRUE(Becomes([&] { return server_.asked("engine.test") > 0; }));
  server_.Set("engine.test", {.addresses = {"127.0.0.2"}});
  Write("resolv.conf", "search new.test\n");
  Resolve("absent.test");  // any question makes it look at the file
  EXPECT_THAT(out.get_future().get().addresses, ElementsAre("127.0.0.2:80"));
}

TEST_F(ResolverTest, StopsWithoutWaitingForAServer) {
  server_.Set("silent.test", {.manner = Manner::kSilent});
  EXPECT_EQ(Resolve("silent.test", kShort).cause, NetCause::kNameTimeout);
  resolver_->Stop();
  Loop loop;
  auto resolving = resolver_->Resolve(loop, "engine.test", 80, kNever);
  ASSERT_TRUE(resolving.await_ready());
  EXPECT_FALSE(resolving.await_resume());
  EXPECT_TRUE(Resolve("192.0.2.1").addresses.size() == 1);
}

TEST(ParseNameServers, ReadsAddressesWithAndWithoutPorts) {
  const auto servers = ParseNameServers({"10.0.0.53", "127.0.0.1:5353", "fd00::53", "[::1]:54"});
  ASSERT_TRUE(servers);
  std::vector<std::string> texts;
  for (const Address& server : *servers) texts.push_back(server.ToString());
  EXPECT_THAT(texts, ElementsAre("10.0.0.53:53", "127.0.0.1:5353", "[fd00::53]:53", "[::1]:54"));
}

TEST(ParseNameServers, RefusesWhatIsNoAddress) {
  for (const std::string text : {"dns.test", "10.0.0.53:0", "10.0.0.53:x", "", "dns.test:53"}) {
    const auto servers = ParseNameServers({text});
    ASSERT_FALSE(servers) << text;
    EXPECT_EQ(servers.error().blame, Blame::kCaller);
  }
  EXPECT_FALSE(ParseNameServers(std::vector<std::string>(9, "10.0.0.53")));
}

}  // namespace
}  // namespace fathom
