#include "router/sources/dns_watch.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <thread>

#include "base/text.h"
#include "router/sources/worker_sources.h"
#include "testing/becomes.h"
#include "testing/loop_thread.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// The test sets the answers of the resolver. No worker is probed: the prober's loop never runs.
class DnsWatchTest : public testing::Test {
 protected:
  ~DnsWatchTest() override {
    for (const auto& name : watch_.Names()) sources_.Leave(name.id);
    for (const Member& member : fleet_.Current()->members()) sources_.Leave(member.worker->id());
    Round();  // in which every watch sees that it has been removed
    Round();
    thread_.Stop();
    ::close(log_file_);
  }

  Task<NetResult<NameAnswer>> Look(std::string host, uint16_t port) {
    const std::lock_guard lock(mutex_);
    ++lookups_;
    asked_ = host;
    const auto known = names_.find(host);
    if (known == names_.end())
      co_return NetFail(NetCause::kNoSuchName, "cannot resolve '{}'", host);
    NameAnswer found{.complete = complete_};
    for (const std::string& text : known->second) {
      found.addresses.push_back(*Address::Numeric(text, port));
    }
    co_return found;
  }

  void Set(const std::string& name, std::vector<std::string> addresses) {
    const std::lock_guard lock(mutex_);
    names_[name] = std::move(addresses);
  }
  void SetComplete(bool complete) {
    const std::lock_guard lock(mutex_);
    complete_ = complete;
  }
  void Unset(const std::string& name) {
    const std::lock_guard lock(mutex_);
    names_.erase(name);
  }
  int lookups() {
    const std::lock_guard lock(mutex_);
    return lookups_;
  }

  // Waits until every watched name has been looked up twice more.
  void Round() {
    std::this_thread::sleep_for(4 * kInterval);
    thread_.Call([] {});
  }

  static WorkerRequest Entry(const std::string& url) {
    WorkerRequest request;
    request.url = url;
    return request;
  }
  DnsWatch::NameState Watch(const std::string& url) {
    auto state = watch_.Watch(Entry(url));
    EXPECT_TRUE(state) << state.error().what;
    return *state;
  }
  std::string Refusal(const WorkerRequest& request) {
    const auto state = watch_.Watch(request);
    EXPECT_FALSE(state) << request.url;
    return state ? "" : state.error().what;
  }

  std::vector<std::string> Urls() const {
    std::vector<std::string> urls;
    for (const Member& member : fleet_.Current()->members()) {
      urls.push_back(member.worker->spec().url);
    }
    return urls;
  }
  bool Becomes(const std::vector<std::string>& urls) const {
    const auto matches = testing::Matches(testing::UnorderedElementsAreArray(urls));
    return fathom::Becomes([&] { return matches(Urls()); });
  }
  std::string Said() const {
    std::string text(1 << 22, '\0');
    text.resize(static_cast<size_t>(pread(log_file_, text.data(), text.size(), 0)));
    return text;
  }
  // The number of log records that contain it.
  size_t Said(std::string_view what) const {
    const std::string text = Said();
    size_t count = 0;
    for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
    return count;
  }
  bool Says(std::string_view what) const {
    return fathom::Becomes([&] { return Said(what) > 0; });
  }

  static constexpr size_t kWorkers = 1500;  // at most
  static constexpr Duration kInterval = milliseconds(5);

  const int log_file_ = memfd_create("log", 0);
  Log log_{log_file_, LogLevel::kInfo};
  LoopThread thread_;
  Loop unused_;
  Resolver resolver_;
  Fleet fleet_{BreakerOptions{}, kWorkers};
  Prober prober_{unused_, resolver_, fleet_, ProbeOptions{}, log_};
  Directory directory_{fleet_, prober_, [](const std::string&) { return std::nullopt; }, log_};
  std::mutex mutex_;
  std::map<std::string, std::vector<std::string>> names_;  // guarded by mutex_, as all below
  std::string asked_;
  bool complete_ = true;
  int lookups_ = 0;
  Muster muster_{directory_, log_};
  DnsWatch watch_{thread_.loop(),
                  directory_,
                  muster_,
                  [this](std::string host, uint16_t port) { return Look(std::move(host), port); },
                  DnsWatchOptions{.interval = kInterval, .plain_interval = kInterval},
                  log_};
  WorkerSources sources_{thread_.loop(), muster_, watch_};
};

TEST(DnsWatch, KnowsWhichEntriesAreNames) {
  EXPECT_TRUE(DnsWatch::IsName("dns+http://pods:8000"));
  EXPECT_TRUE(DnsWatch::IsName("dns+https://pods"));
  EXPECT_TRUE(DnsWatch::IsName("dns://pods"));  // refused, with the right spelling in the error
  EXPECT_FALSE(DnsWatch::IsName("http://dns:8000"));
  EXPECT_FALSE(DnsWatch::IsName("dns-1.example:8000"));
}

TEST_F(DnsWatchTest, MakesAWorkerOfEachAddressWithTheNameAsItsHost) {
  Set("pods", {"10.0.0.1", "10.0.0.2", "10.0.0.2"});
  Watch("dns+http://Pods:8000/base/");
  ASSERT_TRUE(Becomes({"http://10.0.0.1:8000/base", "http://10.0.0.2:8000/base"}));
  const WorkerId id = WorkerId::OfUrl("http://10.0.0.1:8000/base");
  const Member* const member = fleet_.Current()->Find(id);
  ASSERT_NE(member, nullptr);
  EXPECT_EQ(member->worker->spec().host_header, "pods:8000");
  EXPECT_EQ(member->worker->spec().base_path, "/base");
  const auto endpoint = directory_.Find(id);
  EXPECT_EQ(endpoint->url.host, "10.0.0.1");
  EXPECT_EQ(endpoint->Called().HostHeader(), "pods:8000");
  EXPECT_TRUE(Says("Worker added"));
}

TEST_F(DnsWatchTest, FollowsTheNameAsAddressesComeAndGo) {
  Set("pods", {"10.0.0.1", "10.0.0.2"});
  Watch("dns+http://pods:1");
  ASSERT_TRUE(Becomes({"http://10.0.0.1:1", "http://10.0.0.2:1"}));
  const auto stays = fleet_.Current()->Find(WorkerId::OfUrl("http://10.0.0.2:1"))->worker;
  Set("pods", {"10.0.0.3", "10.0.0.2"});
  ASSERT_TRUE(Becomes({"http://10.0.0.2:1", "http://10.0.0.3:1"}));
  EXPECT_EQ(fleet_.Current()->Find(stays->id())->worker, stays) << "it is the same one";
  EXPECT_THAT(Said(), AllOf(HasSubstr("Worker removed"), HasSubstr("url=http://10.0.0.1:1 "),
                            HasSubstr("DNS name dns+http://pods:1 no longer has this address")));
  EXPECT_EQ(Said("Worker removed"), 1u);
}

TEST_F(DnsWatchTest, ChangesNothingWhileTheNameCannotBeFoundAndSaysSoOnce) {
  Set("pods", {"10.0.0.1"});
  Watch("dns+http://pods:1");
  ASSERT_TRUE(Becomes({"http://10.0.0.1:1"}));
  Unset("pods");
  ASSERT_TRUE(Says("A source of workers cannot be read"));
  EXPECT_THAT(watch_.Names().front().problem, HasSubstr("cannot resolve 'pods'"));
  Set("pods", {});
  Round();
  EXPECT_THAT(watch_.Names().front().problem, HasSubstr("no addresses"));
  EXPECT_THAT(Urls(), ElementsAre("http://10.0.0.1:1"));
  Set("pods", {"10.0.0.1"});
  ASSERT_TRUE(Says("works again"));
  Round();
  EXPECT_EQ(Said("A source of workers cannot be read"), 1u);
  EXPECT_EQ(Said("works again"), 1u);
  EXPECT_EQ(watch_.Names().front().problem, "");
  EXPECT_EQ(Said("Worker removed"), 0u);
}

TEST_F(DnsWatchTest, IsPendingUntilEachNameWasLookedUpOrFailedOnce) {
  Set("pods", {"10.0.0.1"});
  thread_.Call([&] {  // so that no lookup can begin
    Watch("dns+http://pods:1");
    Watch("dns+http://nobody:1");
    EXPECT_EQ(muster_.pending(), 2u);
    EXPECT_THAT(Urls(), IsEmpty());
  });
  while (muster_.pending() > 0) std::this_thread::yield();
  EXPECT_THAT(Urls(), ElementsAre("http://10.0.0.1:1"));
  EXPECT_EQ(Said("A source of workers cannot be read"), 1u);
}

TEST_F(DnsWatchTest, DoesNotTakeHalfAnAnswerForAMoveToTheOtherFamily) {
  Set("pods", {"10.0.0.1", "10.0.0.2"});
  Watch("dns+http://pods:1");
  const std::vector<std::string> four = {"http://10.0.0.1:1", "http://10.0.0.2:1"};
  ASSERT_TRUE(Becomes(four));
  SetComplete(false);
  Set("pods", {"fd00::1", "fd00::2"});
  ASSERT_TRUE(Says("A source of workers cannot be read"));
  EXPECT_TRUE(Becomes(four));
  EXPECT_EQ(Said("Worker removed"), 0u);
  SetComplete(true);
  EXPECT_TRUE(Becomes({"http://[fd00::1]:1", "http://[fd00::2]:1"}));
}

TEST_F(DnsWatchTest, CountsAMachineWithTwoFamiliesOnce) {
  Set("pods", {"fd00::1", "10.0.0.1", "fd00::2", "10.0.0.2"});
  Watch("dns+http://pods:1");
  const std::vector<std::string> six = {"http://[fd00::1]:1", "http://[fd00::2]:1"};
  ASSERT_TRUE(Becomes(six));
  Set("pods", {"10.0.0.1", "fd00::1", "10.0.0.2", "fd00::2"});
  Round();
  EXPECT_TRUE(Becomes(six)) << "another order is no reason to replace them all";
  EXPECT_EQ(Said("Worker removed"), 0u);
  Set("pods", {"10.0.0.1", "10.0.0.2"});
  EXPECT_TRUE(Becomes({"http://10.0.0.1:1", "http://10.0.0.2:1"}));
}

TEST_F(DnsWatchTest, LeavesAnAddressAloneThatIsThereForAnotherReason) {
  ASSERT_TRUE(sources_.Join(Entry("http://10.0.0.1:1")));
  Set("pods", {"10.0.0.1", "10.0.0.2"});
  Set("more", {"10.0.0.2", "10.0.0.3"});
  Watch("dns+http://pods:1");
  ASSERT_TRUE(Becomes({"http://10.0.0.1:1", "http://10.0.0.2:1"}));
  Watch("dns+http://more:1");
  ASSERT_TRUE(Becomes({"http://10.0.0.1:1", "http://10.0.0.2:1", "http://10.0.0.3:1"}));
  Set("pods", {"10.0.0.9"});
  // The worker listed by its own URL stays, and the one that the other name has.
  ASSERT_TRUE(Becomes(
      {"http://10.0.0.1:1", "http://10.0.0.2:1", "http://10.0.0.3:1", "http://10.0.0.9:1"}));
  EXPECT_EQ(Said("WARN"), 0u) << Said();
}

TEST_F(DnsWatchTest, KeepsOutWhatAnOperatorTookOutUntilTheNameIsEnteredAgain) {
  Set("pods", {"10.0.0.1", "10.0.0.2"});
  Set("more", {"10.0.0.1"});
  Watch("dns+http://pods:1");
  ASSERT_TRUE(Becomes({"http://10.0.0.1:1", "http://10.0.0.2:1"}));
  Watch("dns+http://more:1");
  const WorkerId id = WorkerId::OfUrl("http://10.0.0.1:1");
  EXPECT_TRUE(sources_.Leave(id));
  EXPECT_FALSE(sources_.Leave(id));
  Round();
  EXPECT_THAT(Urls(), ElementsAre("http://10.0.0.2:1"));
  EXPECT_THAT(Watch("dns+http://more:1").workers, SizeIs(1));
  EXPECT_TRUE(Becomes({"http://10.0.0.1:1", "http://10.0.0.2:1"}));
}

TEST_F(DnsWatchTest, TakesAnAddressBackThatWasAwayInBetween) {
  Set("pods", {"10.0.0.1", "10.0.0.2"});
  Watch("dns+http://pods:1");
  ASSERT_TRUE(Becomes({"http://10.0.0.1:1", "http://10.0.0.2:1"}));
  ASSERT_TRUE(sources_.Leave(WorkerId::OfUrl("http://10.0.0.1:1")));
  EXPECT_THAT(watch_.Names().front().taken_out, SizeIs(1));
  Set("pods", {"10.0.0.2"});
  Round();
  EXPECT_THAT(watch_.Names().front().taken_out, IsEmpty());
  Set("pods", {"10.0.0.1", "10.0.0.2"});
  EXPECT_TRUE(Becomes({"http://10.0.0.1:1", "http://10.0.0.2:1"}));
}

TEST_F(DnsWatchTest, LetsANameGoWithAllItsWorkersAndAsksForItNoMore) {
  Set("pods", {"10.0.0.1", "10.0.0.2"});
  const WorkerId name = Watch("dns+http://pods:1").id;
  ASSERT_TRUE(Becomes({"http://10.0.0.1:1", "http://10.0.0.2:1"}));
  EXPECT_TRUE(sources_.Leave(name));
  EXPECT_FALSE(sources_.Leave(name));
  EXPECT_THAT(Urls(), IsEmpty());
  EXPECT_THAT(watch_.Names(), IsEmpty());
  Round();
  const int asked = lookups();
  Round();
  EXPECT_EQ(lookups(), asked);
  EXPECT_THAT(Urls(), IsEmpty());
  Watch("dns+http://pods:1");
  EXPECT_TRUE(Becomes({"http://10.0.0.1:1", "http://10.0.0.2:1"}));
}

TEST_F(DnsWatchTest, UsesABoundedNumberOfAddressesAndThoseThatItHas) {
  std::vector<std::string> many;
  for (size_t i = 0; i < DnsWatch::kMaxAddresses + 10; ++i) {
    many.push_back(fmt::format("10.1.{}.{}", i / 200, i % 200));
  }
  Set("pods", many);
  Watch("dns+http://pods:1");
  ASSERT_TRUE(Says("more addresses than the limit"));
  EXPECT_THAT(Urls(), SizeIs(DnsWatch::kMaxAddresses));
  std::ranges::reverse(many);
  Set("pods", many);
  Round();
  EXPECT_EQ(Said("Worker removed"), 0u);
  EXPECT_EQ(Said("more addresses than the limit"), 1u);
}

TEST_F(DnsWatchTest, FillsTheFleetAndSaysOnceThatItIsFull) {
  for (int name = 0; name < 2; ++name) {
    std::vector<std::string> addresses;
    for (int i = 0; i < 1000; ++i) {
      addresses.push_back(fmt::format("10.{}.{}.{}", name, i / 200, i % 200));
    }
    Set(fmt::format("pods-{}", name), addresses);
    Watch(fmt::format("dns+http://pods-{}:1", name));
  }
  ASSERT_TRUE(Says("Some workers of a source were not added"));
  Round();
  EXPECT_THAT(Urls(), SizeIs(kWorkers));
  EXPECT_EQ(Said("Some workers of a source"), 1u);
}

TEST_F(DnsWatchTest, GivesEachAddressTheEventPortsOfTheEntry) {
  Set("pods", {"fd00::1", "fd00::2"});
  WorkerRequest request = Entry("dns+http://pods:1");
  request.kv_events = "tcp://*:5557";
  request.kv_events_replay = "tcp://pods:5558";
  request.kv_events_topic = "kv";
  ASSERT_TRUE(watch_.Watch(request));
  ASSERT_TRUE(Becomes({"http://[fd00::1]:1", "http://[fd00::2]:1"}));
  const auto fleet = fleet_.Current();
  const WorkerSpec& spec = fleet->Find(WorkerId::OfUrl("http://[fd00::2]:1"))->worker->spec();
  EXPECT_EQ(spec.kv_events, "tcp://[fd00::2]:5557");
  EXPECT_EQ(spec.kv_events_replay, "tcp://[fd00::2]:5558");
  EXPECT_EQ(spec.kv_events_topic, "kv");
}

TEST_F(DnsWatchTest, RefusesEventsOfOneEngineForAll) {
  for (const char* endpoint : {"tcp://10.0.0.1:5557", "tcp://other:5557", "ipc:///tmp/kv", "*:5557",
                               "tcp://*:99999", "tcp://*"}) {
    WorkerRequest request = Entry("dns+http://pods:1");
    request.kv_events = endpoint;
    EXPECT_THAT(Refusal(request),
                AllOf(HasSubstr("kv_events '"), HasSubstr(endpoint), HasSubstr("tcp://*:PORT")));
  }
}

TEST_F(DnsWatchTest, RefusesWhatIsNoNameAndSaysWhatIsWanted) {
  EXPECT_EQ(Refusal(Entry("dns+http://10.0.0.1:8000/b")),
            "dns+http://10.0.0.1:8000/b: an address needs no lookup; write "
            "http://10.0.0.1:8000/b");
  EXPECT_THAT(Refusal(Entry("dns+http://[::1]:1")), HasSubstr("write http://[::1]:1"));
  EXPECT_THAT(Refusal(Entry("dns://pods:1")), HasSubstr("dns+http://name:port"));
  EXPECT_THAT(Refusal(Entry("dns+ftp://pods:1")),
              AllOf(HasSubstr("after dns+"), HasSubstr("ftp://pods:1")));
  EXPECT_THAT(Refusal(Entry("dns+http://pods:99999")), HasSubstr("port"));
  EXPECT_THAT(Refusal(Entry("dns+http://")), HasSubstr("host is missing"));
  EXPECT_THAT(Refusal(Entry("dns+http://u:secret@pods")), Not(HasSubstr("secret")));
  const std::string label(64, 'a');
  for (const char* const name : {"a..b", ".a", ".", "a..", label.c_str()}) {
    EXPECT_THAT(Refusal(Entry(fmt::format("dns+http://{}:1", name))), HasSubstr("not a DNS name"));
  }
  EXPECT_EQ(lookups(), 0);
  EXPECT_THAT(watch_.Names(), IsEmpty());
}

TEST_F(DnsWatchTest, ChecksTheRestOfTheEntryBeforeAnythingIsWatched) {
  WorkerRequest request = Entry("dns+http://pods:1");
  request.ca_file = "/nowhere.pem";
  EXPECT_THAT(Refusal(request), HasSubstr("ca_file"));
  request.url = "dns+https://pods:1";
  EXPECT_THAT(Refusal(request), HasSubstr("/nowhere.pem"));
  request = Entry("dns+http://pods:1");
  request.api_key_env = "NO_SUCH_KEY";
  request.from = WorkerRequest::From::kOperator;
  EXPECT_THAT(Refusal(request), HasSubstr("NO_SUCH_KEY"));
  EXPECT_THAT(watch_.Names(), IsEmpty());
}

TEST_F(DnsWatchTest, RefusesAKnownNameWithOtherKeys) {
  Watch("dns+http://pods:1");
  WorkerRequest other = Entry("dns+http://PODS:1/");
  EXPECT_TRUE(watch_.Watch(other)) << "another spelling is the same";
  other.kv_events = "tcp://*:1";
  EXPECT_THAT(Refusal(other),
              AllOf(HasSubstr("with different settings"), HasSubstr("DELETE /workers/")));
}

TEST_F(DnsWatchTest, LooksUpAFinalDotAndShowsItToNobody) {
  Set("pods.prod.svc.", {"10.0.0.1"});
  Watch("dns+http://pods.prod.svc.:1");
  ASSERT_TRUE(Becomes({"http://10.0.0.1:1"}));
  const auto endpoint = directory_.Find(WorkerId::OfUrl("http://10.0.0.1:1"));
  EXPECT_EQ(endpoint->Called().host, "pods.prod.svc");
}

TEST_F(DnsWatchTest, SharesOneAuthorityAmongTheAddressesOfAName) {
  Set("pods", {"10.0.0.1", "10.0.0.2"});
  Watch("dns+https://pods:1");
  ASSERT_TRUE(Becomes({"https://10.0.0.1:1", "https://10.0.0.2:1"}));
  const auto first = directory_.Find(WorkerId::OfUrl("https://10.0.0.1:1"));
  const auto second = directory_.Find(WorkerId::OfUrl("https://10.0.0.2:1"));
  ASSERT_NE(first->tls, nullptr);
  EXPECT_EQ(first->tls, second->tls);
}

TEST_F(DnsWatchTest, WarnsOnceOfAPlainNameWithSeveralAddresses) {
  Set("pods", {"10.0.0.1", "10.0.0.2"});
  ASSERT_TRUE(sources_.Add(Entry("http://pods:8000"), "flag"));
  ASSERT_TRUE(Says("several addresses"));
  EXPECT_THAT(Said(),
              AllOf(HasSubstr("WARN"), HasSubstr("url=http://pods:8000"), HasSubstr("addresses=2"),
                    HasSubstr("write dns+http://pods:8000 "), HasSubstr("headless Service")));
  Round();
  EXPECT_EQ(Said("several addresses"), 1u);
}

TEST_F(DnsWatchTest, WarnsOfAPlainNameThatGetsSeveralLater) {
  Set("pods", {"10.0.0.1", "fd00::1"});  // one machine
  ASSERT_TRUE(sources_.Add(Entry("http://pods:8000"), "flag"));
  ASSERT_TRUE(sources_.Add(Entry("http://nobody:8000"), "flag"));
  ASSERT_TRUE(sources_.Add(Entry("http://10.0.0.7:8000"), "flag"));
  Round();
  EXPECT_EQ(Said("WARN"), 0u) << Said();
  Set("pods", {"10.0.0.1", "10.0.0.2"});
  EXPECT_TRUE(Says("several addresses"));
}

}  // namespace
}  // namespace fathom
