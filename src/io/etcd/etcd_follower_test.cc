#include "io/etcd/etcd_follower.h"

#include <gtest/gtest.h>

#include <atomic>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "testing/becomes.h"
#include "testing/loop_thread.h"
#include "testing/scripted_etcd.h"

namespace fathom {
namespace {

// Of the operands of + the last may be evaluated first, and each line changes the server.
std::string InOrder(std::initializer_list<std::string> lines) {
  std::string all;
  for (const std::string& line : lines) all += line;
  return all;
}

using std::chrono::milliseconds;

// What the listener has heard.
class Notebook final : public EtcdListener {
 public:
  void OnValue(std::string_view key, std::string_view value) override {
    const std::lock_guard lock(mutex_);
    values_[std::string(key)] = value;
    story_.push_back("+" + std::string(key));
  }
  void OnGone(std::string_view key) override {
    const std::lock_guard lock(mutex_);
    values_.erase(std::string(key));
    story_.push_back("-" + std::string(key));
  }
  void OnListed(bool whole) override {
    const std::lock_guard lock(mutex_);
    ++listed_;
    whole_ = whole;
  }
  void OnPassedOver(std::string_view key, std::string_view why) override {
    const std::lock_guard lock(mutex_);
    passed_.push_back(std::string(key) + ": " + std::string(why));
  }
  void OnTrouble(std::string_view what) override {
    const std::lock_guard lock(mutex_);
    troubles_.emplace_back(what);
  }
  void OnRecovered() override {
    const std::lock_guard lock(mutex_);
    ++recovered_;
  }

  std::map<std::string, std::string> values() {
    const std::lock_guard lock(mutex_);
    return values_;
  }
  std::vector<std::string> story() {
    const std::lock_guard lock(mutex_);
    return story_;
  }
  std::vector<std::string> passed() {
    const std::lock_guard lock(mutex_);
    return passed_;
  }
  std::vector<std::string> troubles() {
    const std::lock_guard lock(mutex_);
    return troubles_;
  }
  int listed() {
    const std::lock_guard lock(mutex_);
    return listed_;
  }
  bool whole() {
    const std::lock_guard lock(mutex_);
    return whole_;
  }
  int recovered() {
    const std::lock_guard lock(mutex_);
    return recovered_;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
  std::vector<std::string> story_, passed_, troubles_;
  int listed_ = 0;
  bool whole_ = false;
  int recovered_ = 0;
};

EtcdFollowerOptions Quick() {
  EtcdFollowerOptions options;
  options.first_pause = milliseconds(5);
  options.longest_pause = milliseconds(20);
  options.check = milliseconds(40);
  options.doubt = milliseconds(300);
  options.page = 2;
  return options;
}

// Follows etcd on a thread of its own until it is destroyed.
class Following {
 public:
  Following(const EtcdAddress& address, const EtcdFollowerOptions& options = Quick(),
            EtcdClientOptions client = {.patience = milliseconds(300)}) {
    thread_.Call([&] {
      client_ = *EtcdClient::Create(thread_.loop(), resolver_, address, std::move(client));
      follower_ = std::make_unique<EtcdFollower>(thread_.loop(), *client_, address.prefix,
                                                 notebook_, options);
      follower_->Start();
    });
  }
  ~Following() {
    thread_.Call([this] { follower_->Stop(); });
    EXPECT_TRUE(Becomes([this] { return !Running(); }));
    thread_.Call([this] {
      follower_.reset();
      client_.reset();
    });
    thread_.Settle();
  }

  Notebook& notebook() { return notebook_; }
  bool Holds(const std::map<std::string, std::string>& values) {
    return Becomes([&] { return notebook_.values() == values; });
  }

 private:
  bool Running() {
    bool running = true;
    thread_.Call([&] { running = follower_->running(); });
    return running;
  }

  LoopThread thread_;
  Resolver resolver_;
  Notebook notebook_;
  std::unique_ptr<EtcdClient> client_;
  std::unique_ptr<EtcdFollower> follower_;
};

std::string StartRevision(const ScriptedEtcd::Question& watch) {
  return *watch.body.Find("create_request")->Find("start_revision")->string();
}

TEST(EtcdFollower, ReadsPagesAtOneRevisionAndFollowsChanges) {
  ScriptedEtcd etcd;
  for (const char* key : {"fleet/a", "fleet/b", "fleet/c", "fleet/d", "fleet/e"}) {
    etcd.Put(key, "1");
  }
  etcd.Put("fleet2/x", "other");
  Following following(etcd.address());
  EXPECT_TRUE(following.Holds(
      {{"fleet/a", "1"}, {"fleet/b", "1"}, {"fleet/c", "1"}, {"fleet/d", "1"}, {"fleet/e", "1"}}));
  EXPECT_TRUE(Becomes([&] { return etcd.watches() == 1; }));
  const auto reads = etcd.Asked("/v3/kv/range");
  ASSERT_GE(reads.size(), 3u);
  EXPECT_EQ(reads[0].body.Find("revision"), nullptr);
  EXPECT_EQ(*reads[1].body.Find("revision")->string(), "7");
  EXPECT_EQ(*reads[2].body.Find("revision")->string(), "7");
  EXPECT_EQ(StartRevision(etcd.Asked("/v3/watch")[0]), "8");

  etcd.Send(InOrder(
      {etcd.PutLine("fleet/f", "2"), etcd.PutLine("fleet/a", "9"), etcd.DeleteLine("fleet/b")}));
  EXPECT_TRUE(following.Holds(
      {{"fleet/a", "9"}, {"fleet/c", "1"}, {"fleet/d", "1"}, {"fleet/e", "1"}, {"fleet/f", "2"}}));
  EXPECT_EQ(following.notebook().listed(), 1);
  EXPECT_TRUE(following.notebook().troubles().empty());
}

TEST(EtcdFollower, TheSameValueAgainIsNoChange) {
  ScriptedEtcd etcd;
  etcd.Put("fleet/a", "1");
  Following following(etcd.address());
  EXPECT_TRUE(Becomes([&] { return etcd.watches() == 1; }));
  etcd.Send(InOrder({etcd.PutLine("fleet/a", "1"), etcd.PutLine("fleet/b", "1")}));
  EXPECT_TRUE(following.Holds({{"fleet/a", "1"}, {"fleet/b", "1"}}));
  EXPECT_EQ(following.notebook().story(), (std::vector<std::string>{"+fleet/a", "+fleet/b"}));
}

TEST(EtcdFollower, HalfAMessageIsReadAgainFromItsRevision) {
  ScriptedEtcd etcd;
  etcd.Put("fleet/a", "1");
  Following following(etcd.address());
  EXPECT_TRUE(Becomes([&] { return etcd.watches() == 1; }));
  etcd.Send(etcd.PutLine("fleet/b", "1"));
  EXPECT_TRUE(following.Holds({{"fleet/a", "1"}, {"fleet/b", "1"}}));
  const std::string line = etcd.PutLine("fleet/c", "1");
  etcd.Send(line.substr(0, line.size() / 2));
  etcd.EndWatches();
  EXPECT_TRUE(Becomes([&] { return etcd.Asked("/v3/watch").size() >= 2; }));
  EXPECT_TRUE(Becomes([&] { return etcd.watches() == 1; }));
  EXPECT_EQ(StartRevision(etcd.Asked("/v3/watch").back()), "4");
  EXPECT_EQ(following.notebook().values().size(), 2u);
  etcd.Send(line);
  EXPECT_TRUE(following.Holds({{"fleet/a", "1"}, {"fleet/b", "1"}, {"fleet/c", "1"}}));
  EXPECT_EQ(following.notebook().listed(), 1);
}

// What is lost is found by comparing, and nothing else is reported.
void ExpectComparison(ScriptedEtcd& etcd, const std::string& line) {
  etcd.Put("fleet/a", "1");
  etcd.Put("fleet/b", "1");
  etcd.Put("fleet/c", "1");
  EtcdFollowerOptions options = Quick();
  options.check = std::chrono::minutes(1);
  Following following(etcd.address(), options);
  EXPECT_TRUE(Becomes([&] { return etcd.watches() == 1; }));
  etcd.Delete("fleet/b");
  etcd.Put("fleet/c", "2");
  etcd.Put("fleet/d", "1");
  etcd.Send(line);
  EXPECT_TRUE(following.Holds({{"fleet/a", "1"}, {"fleet/c", "2"}, {"fleet/d", "1"}}));
  EXPECT_EQ(following.notebook().story(),
            (std::vector<std::string>{"+fleet/a", "+fleet/b", "+fleet/c", "+fleet/c", "+fleet/d",
                                      "-fleet/b"}));
  EXPECT_TRUE(Becomes([&] { return following.notebook().listed() == 2; }));
}

TEST(EtcdFollower, ACompactedWatchIsReplacedByAComparison) {
  ScriptedEtcd etcd;
  ExpectComparison(etcd, etcd.OtherLine(R"("canceled":true,"compact_revision":"9")"));
}

TEST(EtcdFollower, AnyOtherCancellationToo) {
  ScriptedEtcd etcd;
  ExpectComparison(etcd, etcd.OtherLine(R"("canceled":true,"cancel_reason":"permission denied")"));
}

TEST(EtcdFollower, AnErrorInsideTheStreamToo) {
  ScriptedEtcd etcd;
  ExpectComparison(etcd, "{\"error\":{\"grpc_code\":14,\"message\":\"etcdserver: no leader\"}}\n");
}

TEST(EtcdFollower, GarbageToo) {
  ScriptedEtcd etcd;
  ExpectComparison(etcd, "<html>\n");
}

TEST(EtcdFollower, ProgressMovesTheRevisionAndEventsDoNotMoveItToTheHeaders) {
  ScriptedEtcd etcd;
  etcd.Put("fleet/a", "1");
  Following following(etcd.address());
  EXPECT_TRUE(Becomes([&] { return etcd.watches() == 1; }));
  etcd.Put("elsewhere", "1");
  etcd.Put("elsewhere", "2");
  etcd.Send(etcd.OtherLine(R"("watch_id":"0")"));  // revision 4
  // The header is ahead of the event: this watch has not caught up.
  etcd.Put("fleet/b", "1");  // 5
  etcd.Put("elsewhere", "3");
  etcd.Send(etcd.OtherLine(R"("events":[{"kv":{"key":"ZmxlZXQvYg==","value":"MQ==",)"
                           R"("mod_revision":"5"}}])"));
  EXPECT_TRUE(following.Holds({{"fleet/a", "1"}, {"fleet/b", "1"}}));
  etcd.EndWatches();
  EXPECT_TRUE(Becomes([&] { return etcd.Asked("/v3/watch").size() >= 2; }));
  EXPECT_EQ(StartRevision(etcd.Asked("/v3/watch").back()), "6");
}

TEST(EtcdFollower, AnOutageIsReportedOnceAndForgetsNothing) {
  ScriptedEtcd etcd;
  etcd.Put("fleet/a", "1");
  Following following(etcd.address());
  // The watch lasts until it has been checked: its end alone is no outage.
  EXPECT_TRUE(Becomes([&] { return etcd.Asked("/v3/kv/range").size() >= 2; }));
  etcd.EndWatches();
  EXPECT_TRUE(Becomes([&] { return etcd.Asked("/v3/watch").size() == 2; }));
  EXPECT_TRUE(following.notebook().troubles().empty());
  EXPECT_TRUE(Becomes([&] { return etcd.Asked("/v3/kv/range").size() >= 3; }));
  etcd.SetOverride([](const ScriptedEtcd::Question&) {
    return ScriptedEtcd::Reply{503, R"({"error":"etcdserver: no leader","code":14})"};
  });
  etcd.EndWatches();
  EXPECT_TRUE(Becomes([&] { return etcd.Asked("/v3/watch").size() >= 6; }));
  ASSERT_EQ(following.notebook().troubles().size(), 1u);
  EXPECT_TRUE(following.notebook().troubles()[0].contains("no leader"));
  EXPECT_EQ(following.notebook().values().size(), 1u);
  EXPECT_EQ(following.notebook().recovered(), 0);
  // Another cause is reported again.
  etcd.SetOverride([](const ScriptedEtcd::Question&) {
    return ScriptedEtcd::Reply{403, R"({"error":"etcdserver: permission denied","code":7})"};
  });
  EXPECT_TRUE(Becomes([&] { return following.notebook().troubles().size() == 2; }));
  etcd.SetOverride(nullptr);
  EXPECT_TRUE(Becomes([&] { return following.notebook().recovered() == 1; }));
  EXPECT_EQ(following.notebook().story(), (std::vector<std::string>{"+fleet/a"}));
}

TEST(EtcdFollower, AChangeThatTheWatchDoesNotDeliverIsFound) {
  ScriptedEtcd etcd;
  etcd.Put("fleet/a", "1");
  Following following(etcd.address());
  EXPECT_TRUE(Becomes([&] { return etcd.watches() == 1; }));
  etcd.Put("fleet/b", "1");
  EXPECT_TRUE(following.Holds({{"fleet/a", "1"}, {"fleet/b", "1"}}));
  EXPECT_TRUE(Becomes([&] { return etcd.Asked("/v3/watch").size() >= 2; }));
  etcd.Delete("fleet/a");
  EXPECT_TRUE(following.Holds({{"fleet/b", "1"}}));
}

TEST(EtcdFollower, AWatchThatIsNeverConfirmedIsAnOutage) {
  ScriptedEtcd etcd;
  etcd.Put("fleet/a", "1");
  etcd.Mute(true);
  Following following(etcd.address());
  EXPECT_TRUE(Becomes([&] { return following.notebook().troubles().size() == 1; }));
  EXPECT_EQ(following.notebook().values().size(), 1u);
  etcd.Mute(false);
  EXPECT_TRUE(Becomes([&] { return following.notebook().recovered() == 1; }));
}

TEST(EtcdFollower, KeysThatAReplacedClusterDoesNotHaveAreKeptForAWhile) {
  ScriptedEtcd etcd;
  etcd.Put("fleet/a", "1");
  etcd.Put("fleet/b", "1");
  Following following(etcd.address());
  EXPECT_TRUE(Becomes([&] { return etcd.watches() == 1; }));
  etcd.Replace(12, 1);
  etcd.Put("fleet/b", "2");
  etcd.EndWatches();
  EXPECT_TRUE(following.Holds({{"fleet/a", "1"}, {"fleet/b", "2"}}));
  EXPECT_TRUE(following.Holds({{"fleet/b", "2"}}));
}

TEST(EtcdFollower, AKeyThatReturnsInAReplacedClusterWasNeverGone) {
  ScriptedEtcd etcd;
  etcd.Put("fleet/a", "1");
  etcd.Put("fleet/b", "1");
  Following following(etcd.address());
  EXPECT_TRUE(Becomes([&] { return etcd.watches() == 1; }));
  etcd.Replace(11, 1);  // from a backup: the same cluster, an older revision
  etcd.EndWatches();
  EXPECT_TRUE(Becomes([&] { return following.notebook().listed() == 2; }));
  EXPECT_TRUE(Becomes([&] { return etcd.Asked("/v3/watch").size() == 3; }));
  etcd.Send(etcd.PutLine("fleet/a", "1"));
  EXPECT_TRUE(following.Holds({{"fleet/a", "1"}}));
  EXPECT_EQ(following.notebook().story(),
            (std::vector<std::string>{"+fleet/a", "+fleet/b", "-fleet/b"}));
}

TEST(EtcdFollower, AnotherMemberIsAskedWhenOneIsAway) {
  ScriptedEtcd etcd;
  etcd.Put("fleet/a", "1");
  std::string nowhere;
  {
    const ScriptedServer gone([](RawSocket&) {});
    nowhere = gone.address().ToString();
  }
  Following following(*EtcdAddress::Parse("etcd://" + nowhere + "," + etcd.host() + "/fleet"));
  EXPECT_TRUE(following.Holds({{"fleet/a", "1"}}));
  EXPECT_TRUE(Becomes([&] { return etcd.watches() == 1; }));
  EXPECT_TRUE(following.notebook().troubles().empty());
}

TEST(EtcdFollower, AMemberThatNoLongerAnswersReadsIsLeft) {
  ScriptedEtcd first, second;
  first.Put("fleet/a", "1");
  second.Put("fleet/a", "1");
  Following following(
      *EtcdAddress::Parse("etcd://" + first.host() + "," + second.host() + "/fleet"));
  EXPECT_TRUE(Becomes([&] { return first.watches() == 1; }));
  // Cut off from the others: its watch stays open.
  first.SetOverride([](const ScriptedEtcd::Question&) {
    return ScriptedEtcd::Reply{503, R"({"error":"etcdserver: request timed out","code":14})"};
  });
  EXPECT_TRUE(Becomes([&] { return second.watches() == 1; }));
  second.Send(second.PutLine("fleet/b", "1"));
  EXPECT_TRUE(following.Holds({{"fleet/a", "1"}, {"fleet/b", "1"}}));
}

TEST(EtcdFollower, WhatExceedsALimitIsPassedOverAndReportedOnce) {
  ScriptedEtcd etcd;
  etcd.Put("fleet/a", "1");
  etcd.Put("fleet/b", std::string(100, 'x'));
  EtcdFollowerOptions options = Quick();
  options.max_value = 10;
  options.max_keys = 3;
  options.max_values = 16;
  Following following(etcd.address(), options);
  EXPECT_TRUE(Becomes([&] { return etcd.watches() == 1; }));
  EXPECT_EQ(following.notebook().values().size(), 1u);
  ASSERT_EQ(following.notebook().passed().size(), 1u);
  EXPECT_TRUE(following.notebook().passed()[0].starts_with("fleet/b: "));
  // A value that grows too large leaves the former one.
  etcd.Send(InOrder({etcd.PutLine("fleet/a", std::string(11, 'y')),
                     etcd.PutLine("fleet/a", std::string(12, 'y')),
                     etcd.PutLine("fleet/b", std::string(101, 'x')),
                     etcd.PutLine("fleet/c", std::string(10, 'z')), etcd.PutLine("fleet/d", "2"),
                     etcd.PutLine("fleet/e", "2"), etcd.DeleteLine("fleet/b")}));
  EXPECT_TRUE(following.Holds({{"fleet/a", "1"}, {"fleet/c", std::string(10, 'z')}}));
  EXPECT_TRUE(Becomes([&] { return following.notebook().passed().size() == 3; }));
  // The values together: 1 + 10 bytes are there.
  etcd.Send(etcd.PutLine("fleet/b", std::string(7, 'q')));
  EXPECT_TRUE(Becomes([&] { return following.notebook().passed().size() == 4; }));
  EXPECT_EQ(following.notebook().values().size(), 2u);
}

TEST(EtcdFollower, WhatWasPassedOverIsTakenBack) {
  ScriptedEtcd etcd;
  EtcdFollowerOptions options = Quick();
  options.max_value = 10;
  options.max_key = 20;
  options.check = std::chrono::minutes(1);
  Following following(etcd.address(), options);
  ASSERT_TRUE(Becomes([&] { return etcd.watches() == 1; }));
  EXPECT_TRUE(following.notebook().whole());
  // A key that never had a value that could be read, and one whose former value is back.
  etcd.Send(InOrder({etcd.PutLine("fleet/a", std::string(11, 'x')), etcd.DeleteLine("fleet/a"),
                     etcd.PutLine("fleet/b", "1"), etcd.PutLine("fleet/b", std::string(11, 'x')),
                     etcd.PutLine("fleet/b", "1")}));
  const std::vector<std::string> story = {"-fleet/a", "+fleet/b", "+fleet/b"};
  EXPECT_TRUE(Becomes([&] { return following.notebook().story() == story; }));
  // Keys that are not followed at all are gone with the next list, and reported if they come back.
  const std::string long_key = "fleet/" + std::string(20, 'c');
  for (const bool whole : {false, true, false}) {
    whole ? etcd.Delete(long_key) : etcd.Put(long_key, "1");
    EXPECT_TRUE(Becomes([&] {
      etcd.Send(etcd.OtherLine(R"("canceled":true,"compact_revision":"9")"));
      return following.notebook().whole() == whole;
    }));
  }
  EXPECT_EQ(following.notebook().passed().size(), 4u);
}

TEST(EtcdFollower, ATokenIsFetchedAndFetchedAgainWhenItIsRefused) {
  ScriptedEtcd etcd;
  etcd.Put("fleet/a", "1");
  std::atomic<int> tokens = 0;
  std::atomic<bool> wrong = false;
  etcd.SetOverride(
      [&](const ScriptedEtcd::Question& question) -> std::optional<ScriptedEtcd::Reply> {
        if (question.path == "/v3/auth/authenticate") {
          if (wrong) {
            return ScriptedEtcd::Reply{
                400, R"({"error":"etcdserver: authentication failed, invalid user ID or password",)"
                     R"("code":3})"};
          }
          return ScriptedEtcd::Reply{200, R"({"token":"t.)" + std::to_string(++tokens) + R"("})"};
        }
        if (question.token != "t." + std::to_string(tokens)) {
          return ScriptedEtcd::Reply{401,
                                     R"({"error":"etcdserver: invalid auth token","code":16})"};
        }
        return std::nullopt;
      });
  Following following(etcd.address(), Quick(),
                      {.login = {"ann", "pa\"ss"}, .patience = milliseconds(300)});
  EXPECT_TRUE(following.Holds({{"fleet/a", "1"}}));
  EXPECT_TRUE(Becomes([&] { return etcd.watches() == 1; }));
  EXPECT_EQ(etcd.Asked("/v3/watch")[0].token, "t.1");
  const auto login = etcd.Asked("/v3/auth/authenticate")[0];
  EXPECT_EQ(*login.body.Find("password")->string(), "pa\"ss");
  EXPECT_EQ(login.token, "");
  ++tokens;  // the one that it has has expired
  EXPECT_TRUE(Becomes([&] { return etcd.Asked("/v3/auth/authenticate").size() == 2; }));
  EXPECT_TRUE(following.notebook().troubles().empty());
  wrong = true;
  ++tokens;
  EXPECT_TRUE(Becomes([&] { return following.notebook().troubles().size() == 1; }));
  EXPECT_FALSE(following.notebook().troubles()[0].contains("pa\"ss"));
}

TEST(EtcdFollower, WhereThereAreNoAccountsNoneIsUsed) {
  ScriptedEtcd etcd;
  etcd.Put("fleet/a", "1");
  etcd.SetOverride(
      [](const ScriptedEtcd::Question& question) -> std::optional<ScriptedEtcd::Reply> {
        if (question.path != "/v3/auth/authenticate") return std::nullopt;
        return ScriptedEtcd::Reply{
            412, R"({"error":"etcdserver: authentication is not enabled","code":9})"};
      });
  Following following(etcd.address(), Quick(), {.login = {"ann", "x"}});
  EXPECT_TRUE(following.Holds({{"fleet/a", "1"}}));
  EXPECT_EQ(etcd.Asked("/v3/auth/authenticate").size(), 1u);
}

TEST(EtcdFollower, AnAnswerThatIsTooLongIsReadInSmallerPages) {
  ScriptedEtcd etcd;
  for (const char* key : {"fleet/a", "fleet/b", "fleet/c"}) etcd.Put(key, "1");
  etcd.SetOverride(
      [](const ScriptedEtcd::Question& question) -> std::optional<ScriptedEtcd::Reply> {
        const Json* const limit = question.body.Find("limit");
        const bool values = question.body.Find("keys_only") == nullptr;
        if (limit == nullptr || *limit->string() == "1" || !values) return std::nullopt;
        return ScriptedEtcd::Reply{200, std::string(9 << 20, ' ')};
      });
  Following following(etcd.address());
  EXPECT_TRUE(following.Holds({{"fleet/a", "1"}, {"fleet/b", "1"}, {"fleet/c", "1"}}));
}

}  // namespace
}  // namespace fathom
