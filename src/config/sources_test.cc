#include "config/sources.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <vector>

#include "config/workers_file.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// The operator's input: arguments, variables and one file, all of them fake.
struct World {
  Command command = Command::kServe;
  std::vector<std::string_view> args = {};
  Environment environment = {};
  std::optional<std::string> yaml = {};  // the content of c.yaml; adds --config

  Result<Settings> Load() const {
    std::vector<std::string_view> all = args;
    if (yaml) all.insert(all.begin(), {"--config", "c.yaml"});
    return LoadSettings(command, all, environment,
                        [&](const std::string& path) -> Result<std::string> {
                          if (path == "c.yaml" && yaml) return *yaml;
                          return Fail(Blame::kCaller, "no such file");
                        });
  }
  Settings Loaded() const {
    auto settings = Load();
    if (settings) return *std::move(settings);
    ADD_FAILURE() << settings.error().what;
    return Settings(command);
  }
  std::string Refusal() const {
    const auto settings = Load();
    if (settings) return "accepted";
    EXPECT_EQ(settings.error().blame, Blame::kCaller);
    EXPECT_EQ(settings.error().what.find('\n'), std::string::npos) << "one line";
    return settings.error().what;
  }
};

World Args(std::vector<std::string_view> args) { return {.args = std::move(args)}; }
World Variables(Environment environment) { return {.environment = std::move(environment)}; }
World Yaml(std::string yaml) { return {.yaml = std::move(yaml)}; }

// Precedence

TEST(Sources, AreRankedFlagFathomDynamoFileDefault) {
  World world;
  EXPECT_EQ(world.Loaded().Integer("port"), 8000);
  EXPECT_EQ(world.Loaded().OriginOf("port"), "default");

  world.yaml = "# the fleet\nport: 1\n";
  EXPECT_EQ(world.Loaded().Integer("port"), 1);
  EXPECT_EQ(world.Loaded().OriginOf("port"), "c.yaml:2");

  world.environment["DYN_HTTP_PORT"] = "2";
  EXPECT_EQ(world.Loaded().Integer("port"), 2);
  EXPECT_EQ(world.Loaded().OriginOf("port"), "environment DYN_HTTP_PORT");

  world.environment["FATHOM_PORT"] = "3";
  EXPECT_EQ(world.Loaded().Integer("port"), 3);
  EXPECT_EQ(world.Loaded().OriginOf("port"), "environment FATHOM_PORT");

  world.args = {"--port", "4"};
  EXPECT_EQ(world.Loaded().Integer("port"), 4);
  EXPECT_EQ(world.Loaded().OriginOf("port"), "flag --port");
}

TEST(Sources, AreCheckedEvenWhereSomethingStrongerWins) {
  EXPECT_EQ((World{.args = {"--port", "4"}, .environment = {{"FATHOM_PORT", "x"}}}.Refusal()),
            "FATHOM_PORT=x: must be a whole number");
  EXPECT_EQ((World{.args = {"--port", "4"}, .yaml = "port: x"}.Refusal()),
            "c.yaml:1: port: 'x' must be a whole number");
}

TEST(Sources, IgnoreADynamoVariableThatSomethingStrongerOverrides) {
  const World world{.args = {"--router-mode", "random"},
                    .environment = {{"DYN_ROUTER_MODE", "kv"}}};
  EXPECT_EQ(world.Loaded().Choice("router-mode"), "random");
}

// Flags

TEST(Flags, TakeTheirValueAfterASpaceOrAnEqualsSign) {
  EXPECT_EQ(Args({"--port", "9000"}).Loaded().Integer("port"), 9000);
  EXPECT_EQ(Args({"--port=9000"}).Loaded().Integer("port"), 9000);
  EXPECT_EQ(Args({"--host="}).Refusal(),
            "--host (flag --host): must not be empty; 0.0.0.0 listens on every interface");
}

TEST(Flags, MayBeSpelledAsDynamoDoes) {
  const Settings settings = Args({"--http-port", "9000", "--http-host", "::"}).Loaded();
  EXPECT_EQ(settings.Integer("port"), 9000);
  EXPECT_EQ(settings.Text("host"), "::");
  EXPECT_EQ(settings.OriginOf("port"), "flag --http-port");
}

TEST(Flags, TakeTheLastOfSeveral) {
  EXPECT_EQ(Args({"--port", "1", "--http-port", "2"}).Loaded().Integer("port"), 2);
}

TEST(Flags, SwitchOnAndOff) {
  EXPECT_TRUE(Args({"--log-requests"}).Loaded().Flag("log-requests"));
  EXPECT_TRUE(Args({"--log-requests=true"}).Loaded().Flag("log-requests"));
  EXPECT_FALSE(Args({"--log-requests=false"}).Loaded().Flag("log-requests"));
  EXPECT_FALSE(Args({"--log-requests", "--no-log-requests"}).Loaded().Flag("log-requests"));
}

TEST(Flags, GatherListsInEveryForm) {
  const auto urls = [](std::vector<std::string_view> args) {
    return Args(std::move(args)).Loaded().List("worker-urls");
  };
  const auto both = ElementsAre("http://a", "http://b");
  EXPECT_THAT(urls({"--worker-urls", "http://a", "http://b", "--port", "1"}), both);
  EXPECT_THAT(urls({"--worker-urls", "http://a,http://b"}), both);
  EXPECT_THAT(urls({"--worker-urls=http://a http://b"}), both);
  EXPECT_THAT(urls({"--worker-urls", "http://a", "--port=1", "--worker-urls", "http://b"}), both);
}

TEST(Flags, RefuseANameThatDoesNotExist) {
  EXPECT_EQ(Args({"--prot", "1"}).Refusal(), "--prot: no such option; did you mean --port?");
  EXPECT_EQ(Args({"--xyzzy=1"}).Refusal(),
            "--xyzzy: no such option; fathom serve --help lists them");
  EXPECT_EQ(Args({"--engine", "vllm"}).Refusal(),
            "--engine: not an option of serve; it belongs to mock");
  EXPECT_EQ(Args({"-p", "1"}).Refusal(), "-p: no such option; options are written --name");
}

TEST(Flags, RefuseAMissingValue) {
  EXPECT_EQ(Args({"--port"}).Refusal(), "--port: needs a value: --port PORT");
  EXPECT_EQ(Args({"--worker-urls"}).Refusal(),
            "--worker-urls: needs a value: --worker-urls URL...");
  EXPECT_EQ(Args({"--host", "--port", "1"}).Refusal(),
            "--host: needs a value: --host HOST (--host=VALUE if it starts with a dash)");
}

TEST(Flags, RefuseAValueWhereNoneBelongs) {
  EXPECT_EQ(Args({"--no-log-requests=true"}).Refusal(),
            "--no-log-requests: takes no value; write --log-requests or --no-log-requests");
  EXPECT_EQ(Args({"--log-requests", "yes"}).Refusal(),
            "'yes': unexpected argument; fathom serve takes only options");
  EXPECT_EQ(Args({"--log-requests=maybe"}).Refusal(),
            "--log-requests=maybe: must be true or false");
}

TEST(Flags, RefuseToNegateWhatIsNoSwitch) {
  EXPECT_EQ(Args({"--no-port"}).Refusal(), "--no-port: no such option; --port is not a switch");
}

TEST(Flags, RefuseStrayArguments) {
  EXPECT_EQ(Args({"start"}).Refusal(),
            "'start': unexpected argument; fathom serve takes only options");
  EXPECT_EQ(Args({"http://a:1"}).Refusal(),
            "'http://a:1': unexpected argument; did you mean --worker-urls http://a:1?");
}

TEST(Flags, LeaveTheOtherArgumentsToTheOptionThatTakesThem) {
  const World world{.command = Command::kListen,
                    .args = {"tcp://a:1", "--topic", "kv", "tcp://b:1", "--json"}};
  EXPECT_THAT(world.Loaded().List("endpoints"), ElementsAre("tcp://a:1", "tcp://b:1"));
  EXPECT_EQ(world.Loaded().Text("topic"), "kv");
  const World dash{.command = Command::kListen, .args = {"-x"}};
  EXPECT_EQ(dash.Refusal(), "-x: no such option; options are written --name");
}

TEST(Flags, TakePathsAsTheyAre) {
  const World lint{.command = Command::kLint, .args = {"a b,c.yaml", "--diff", "-", "d.yaml"}};
  EXPECT_THAT(lint.Loaded().Files("files"), ElementsAre("a b,c.yaml", "-", "d.yaml"));
  const World doctor{.command = Command::kDoctor,
                     .args = {"--logs", "x y.log", "-", "--manifest=m.yaml", "--kube"}};
  EXPECT_THAT(doctor.Loaded().Files("logs"), ElementsAre("x y.log", "-"));
  EXPECT_THAT(doctor.Loaded().Files("manifest"), ElementsAre("m.yaml"));
}

TEST(Flags, RefuseAValueOutOfBounds) {
  EXPECT_EQ(Args({"--port", "70000"}).Refusal(), "--port=70000: must be between 0 and 65535");
  EXPECT_EQ(Args({"--port", "-1"}).Refusal(), "--port=-1: must be between 0 and 65535");
  EXPECT_EQ(Args({"--max-body-size", "10"}).Refusal(),
            "--max-body-size=10: must be between 1KiB and 64GiB");
  EXPECT_EQ(Args({"--health-check-interval", "1ms"}).Refusal(),
            "--health-check-interval=1ms: must be between 50ms and 1h");
}

TEST(Flags, KeepTheirErrorsOnOneLine) {
  EXPECT_EQ(Args({"--port", "1\n2"}).Refusal(), "--port=1?2: must be a whole number");
  EXPECT_EQ(Args({"a\nb"}).Refusal(),
            "'a?b': unexpected argument; fathom serve takes only options");
}

TEST(Flags, AskForHelp) {
  const std::string_view help[] = {"--port", "1", "--help"};
  EXPECT_TRUE(AsksForHelp(help));
  EXPECT_FALSE(AsksForHelp(std::span(help).first(2)));
}

// Environment

TEST(Variables, RefuseANameThatDoesNotExist) {
  EXPECT_EQ(Variables({{"FATHOM_PROT", "1"}}).Refusal(),
            "FATHOM_PROT: no such variable; did you mean FATHOM_PORT?");
  EXPECT_EQ(Variables({{"FATHOM_HTTP_PORT", "1"}}).Refusal(),
            "FATHOM_HTTP_PORT: no such variable; did you mean FATHOM_PORT?");
  EXPECT_EQ(Variables({{"FATHOM_SOURCE_DIR", "/x"}}).Refusal(),
            "FATHOM_SOURCE_DIR: no such variable; fathom serve --help lists them");
}

TEST(Variables, RefuseAValueOutOfBounds) {
  EXPECT_EQ(Variables({{"FATHOM_PORT", "70000"}}).Refusal(),
            "FATHOM_PORT=70000: must be between 0 and 65535");
}

TEST(Variables, ThatKubernetesMakesOfAServiceAreNobodysSettings) {
  const World world = Variables({{"FATHOM_PORT", "tcp://10.96.0.7:8000"},
                                 {"FATHOM_SERVICE_HOST", "10.96.0.7"},
                                 {"FATHOM_SERVICE_PORT", "8000"},
                                 {"FATHOM_SERVICE_PORT_HTTP", "8000"},
                                 {"FATHOM_PORT_8000_TCP", "tcp://10.96.0.7:8000"},
                                 {"FATHOM_PORT_8000_TCP_ADDR", "10.96.0.7"},
                                 {"FATHOM_ADMIN_PORT", "tcp://10.96.0.8:9000"}});
  EXPECT_EQ(world.Loaded().OriginOf("port"), "default");
  EXPECT_EQ(Variables({{"FATHOM_PORTS", "tcp://10.96.0.7:8000"}}).Refusal(),
            "FATHOM_PORTS: no such variable; did you mean FATHOM_PORT?");
}

TEST(Variables, SkipThoseOfOtherCommandsAndOfOtherPrograms) {
  const World world = Variables({{"FATHOM_ENGINE", "?"}, {"PORT", "1"}, {"DYN_NAMESPACE", "x"}});
  EXPECT_EQ(world.Refusal(), "accepted");
}

TEST(Variables, CountAsUnsetWhenEmpty) {
  const Settings settings = Variables({{"FATHOM_PORT", ""}, {"DYN_HTTP_HOST", ""}}).Loaded();
  EXPECT_EQ(settings.OriginOf("port"), "default");
  EXPECT_EQ(settings.OriginOf("host"), "default");
}

TEST(Variables, RefuseAnEmptyKey) {
  EXPECT_EQ(Variables({{"FATHOM_ADMIN_KEY", ""}}).Refusal(),
            "FATHOM_ADMIN_KEY: is empty; leave it out if no key is wanted");
}

TEST(Variables, GiveListsAndSwitches) {
  const Settings settings =
      Variables({{"FATHOM_WORKER_URLS", "http://a http://b"}, {"FATHOM_LOG_REQUESTS", "1"}})
          .Loaded();
  EXPECT_THAT(settings.List("worker-urls"), ElementsAre("http://a", "http://b"));
  EXPECT_TRUE(settings.Flag("log-requests"));
}

TEST(Variables, NameTheFile) {
  EXPECT_EQ(Variables({{"FATHOM_CONFIG", "gone.yaml"}}).Refusal(),
            "FATHOM_CONFIG=gone.yaml: cannot be read: no such file");
}

TEST(Variables, AreTakenFromTheProcess) {
  const char* variables[] = {"A=1", "B=x=y", "C=", "odd", nullptr};
  EXPECT_THAT(
      EnvironmentOf(variables),
      ElementsAre(testing::Pair("A", "1"), testing::Pair("B", "x=y"), testing::Pair("C", "")));
}

TEST(DynamoVariables, ScaleToTheUnitOfTheirName) {
  EXPECT_EQ(Variables({{"DYN_HTTP_BODY_LIMIT_MB", "45"}}).Loaded().Bytes("max-body-size"),
            uint64_t{45} << 20);
  EXPECT_EQ(
      Variables({{"DYN_HTTP_GRACEFUL_SHUTDOWN_TIMEOUT_SECS", "7"}}).Loaded().Time("drain-timeout"),
      seconds(7));
  EXPECT_EQ(Variables({{"DYN_HTTP_BODY_LIMIT_MB", "45MB"}}).Refusal(),
            "DYN_HTTP_BODY_LIMIT_MB=45MB: must be a plain number, which counts MiB");
  EXPECT_EQ(Variables({{"DYN_HTTP_BODY_LIMIT_MB", "0"}}).Refusal(),
            "DYN_HTTP_BODY_LIMIT_MB=0: must be between 1KiB and 64GiB");
}

TEST(DynamoVariables, RefuseAModeThatDoesNotExistHere) {
  EXPECT_EQ(Variables({{"DYN_ROUTER_MODE", "device-aware-weighted"}}).Refusal(),
            "DYN_ROUTER_MODE=device-aware-weighted: is not one of kv, prefix-hash, round-robin, "
            "random, power-of-two, least-loaded, direct");
}

TEST(DynamoVariables, DoNotReachTheMock) {
  const World world{.command = Command::kMock, .environment = {{"DYN_HTTP_PORT", "8000"}}};
  EXPECT_EQ(world.Loaded().Integer("port"), 8100);
}

// YAML

TEST(ConfigFile, SpellsKeysLikeOptionsWithEitherSeparator) {
  const Settings settings =
      Yaml("max-in-flight: 5\nmax_waiting: 6\nqueue_timeout: 250ms\nlog-requests: yes\n").Loaded();
  EXPECT_EQ(settings.Integer("max-in-flight"), 5);
  EXPECT_EQ(settings.Integer("max-waiting"), 6);
  EXPECT_EQ(settings.Time("queue-timeout"), milliseconds(250));
  EXPECT_TRUE(settings.Flag("log-requests"));
}

TEST(ConfigFile, TakesAListAsASequenceOrAsOneValue) {
  const auto both = ElementsAre("http://a", "http://b");
  EXPECT_THAT(Yaml("worker-urls: [http://a, http://b]").Loaded().List("worker-urls"), both);
  EXPECT_THAT(Yaml("worker-urls: http://a,http://b").Loaded().List("worker-urls"), both);
  EXPECT_EQ(Yaml("worker-urls: {a: b}").Refusal(),
            "c.yaml:1: worker-urls: must be a list of words");
  EXPECT_EQ(Yaml("worker-urls: [[a]]").Refusal(), "c.yaml:1: worker-urls: must be a list of words");
}

TEST(ConfigFile, MayBeEmpty) {
  EXPECT_EQ(Yaml("").Refusal(), "accepted");
  EXPECT_EQ(Yaml("# nothing yet\n").Refusal(), "accepted");
}

TEST(ConfigFile, NamesTheLineOfAnUnknownKey) {
  EXPECT_EQ(Yaml("host: x\n\nprot: 1\n").Refusal(),
            "c.yaml:3: prot: no such key; did you mean port?");
  EXPECT_EQ(Yaml("worker: []\n").Refusal(), "c.yaml:1: worker: no such key; did you mean workers?");
  EXPECT_EQ(Yaml("xyzzy: 1\n").Refusal(),
            "c.yaml:1: xyzzy: no such key; fathom serve --help lists them");
  EXPECT_EQ(Yaml("engine: vllm\n").Refusal(),
            "c.yaml:1: engine: not an option of serve; it belongs to mock");
}

TEST(ConfigFile, EndsWhereAParserWouldGoOnForEver) { EXPECT_FALSE(Yaml(", a").Refusal().empty()); }

TEST(ConfigFile, NamesTheLineOfAWrongValue) {
  EXPECT_EQ(Yaml("host: x\nport: 1\nrouter-mode: rr\n").Refusal(),
            "c.yaml:3: router-mode: 'rr' is not one of kv, prefix-hash, round-robin, random, "
            "power-of-two, least-loaded, direct");
  EXPECT_EQ(Yaml("router-mode: round_robin\n").Refusal(),
            "c.yaml:1: router-mode: 'round_robin' is not one of kv, prefix-hash, round-robin, "
            "random, power-of-two, least-loaded, direct; did you mean round-robin?");
}

TEST(ConfigFile, RefusesAKeyTwiceOrWithoutAValue) {
  EXPECT_EQ(Yaml("port: 1\nhttp_port: 2\n").Refusal(),
            "c.yaml:2: http_port: already set on line 1 as port; remove one of them");
  EXPECT_EQ(Yaml("workers: []\nworkers: []\n").Refusal(),
            "c.yaml:2: workers: already set on line 1; remove one of them");
  EXPECT_EQ(Yaml("port:\n").Refusal(), "c.yaml:1: port: has no value; give one or remove it");
  EXPECT_EQ(Yaml("port: [1]\n").Refusal(), "c.yaml:1: port: must be a single value");
}

TEST(ConfigFile, RefusesToNameAnother) {
  EXPECT_EQ(Yaml("config: d.yaml\n").Refusal(),
            "c.yaml:1: config: a file cannot name another; use --config");
}

TEST(ConfigFile, RefusesWhatIsNoMapOfOptions) {
  EXPECT_EQ(Yaml("\n- port\n").Refusal(), "c.yaml:2: must be a map of options, e.g. port: 8000");
  EXPECT_EQ(Yaml("port 8000").Refusal(), "c.yaml:1: must be a map of options, e.g. port: 8000");
  EXPECT_EQ(Yaml("[a]: b\n").Refusal(), "c.yaml:1: a key must be a word");
  EXPECT_EQ(Yaml("port: 1\n---\nport: 2\n").Refusal(), "c.yaml: has more than one document");
}

TEST(ConfigFile, NamesLineAndColumnOfBadYaml) {
  EXPECT_EQ(Yaml("port: 1\nhost: [a\n").Refusal(),
            "c.yaml:3:1: bad YAML: end of sequence flow not found");
  EXPECT_THAT(Yaml("port: *gone\n").Refusal(), testing::StartsWith("c.yaml:1:7: bad YAML: "));
  EXPECT_THAT(Yaml(std::string(5000, '[')).Refusal(), testing::HasSubstr("bad YAML"));
}

TEST(ConfigFile, RefusesAFileThatCannotBeRead) {
  EXPECT_EQ(Args({"--config", "gone.yaml"}).Refusal(),
            "--config=gone.yaml: cannot be read: no such file");
}

TEST(ConfigFile, NeverShowsASecretInAnError) {
  EXPECT_EQ(Yaml("admin-key: [hush]\n").Refusal(), "c.yaml:1: admin-key: must be a single value");
  EXPECT_EQ(Yaml("api-key: []\n").Refusal(),
            "c.yaml:1: api-key: is empty; leave it out if no key is wanted");
}

// Workers

TEST(Workers, ComeFromFlagsAndFileTogether) {
  const World world{.args = {"--worker-urls", "http://a:1"},
                    .yaml =
                        "workers:\n"
                        "  - http://b:1\n"
                        "  - url: https://c:1\n"
                        "    kv_events: tcp://c:5557\n"
                        "    kv-events-replay: tcp://c:5558\n"
                        "    kv_events_topic: kv\n"
                        "    api_key_env: C_KEY\n"
                        "    ca_file: ca.pem\n"};
  const auto workers = world.Loaded().workers();
  ASSERT_EQ(workers.size(), 3u);
  EXPECT_EQ(workers[0].url, "http://a:1");
  EXPECT_EQ(workers[0].origin, "flag --worker-urls");
  EXPECT_EQ(workers[0].kv_events, std::nullopt);
  EXPECT_EQ(workers[1].url, "http://b:1");
  EXPECT_EQ(workers[1].origin, "c.yaml:2");
  EXPECT_EQ(workers[2].url, "https://c:1");
  EXPECT_EQ(workers[2].origin, "c.yaml:3");
  EXPECT_EQ(workers[2].kv_events, "tcp://c:5557");
  EXPECT_EQ(workers[2].kv_events_replay, "tcp://c:5558");
  EXPECT_EQ(workers[2].kv_events_topic, "kv");
  EXPECT_EQ(workers[2].api_key_env, "C_KEY");
  EXPECT_EQ(workers[2].ca_file, "ca.pem");
}

TEST(Workers, MayHaveTheEmptyTopic) {
  const auto workers =
      Yaml("workers:\n  - url: http://a\n    kv_events_topic: \"\"\n").Loaded().workers();
  ASSERT_EQ(workers.size(), 1u);
  EXPECT_EQ(workers[0].kv_events_topic, "");
  EXPECT_EQ(Yaml("workers:\n  - url: http://a\n    kv_events_topic:\n").Refusal(),
            "c.yaml:3: kv_events_topic: must be a single value; \"\" is the empty one");
  EXPECT_EQ(Yaml("workers:\n  - url: http://a\n    kv_events: \"\"\n").Refusal(),
            "c.yaml:3: kv_events: must be a single value that is not empty");
}

TEST(Workers, MayBeNone) { EXPECT_THAT(Yaml("workers: []\n").Loaded().workers(), IsEmpty()); }

TEST(Workers, RefuseAnUnknownKeyWithItsLine) {
  EXPECT_EQ(Yaml("workers:\n  - url: http://a\n    kv_event: x\n").Refusal(),
            "c.yaml:3: kv_event: no such key of a worker; did you mean kv_events?");
  EXPECT_EQ(Yaml("workers:\n  - url: http://a\n    weight: 3\n").Refusal(),
            "c.yaml:3: weight: no such key of a worker; there are url, kv_events, "
            "kv_events_replay, kv_events_topic, api_key_env, ca_file, role, labels");
}

TEST(Workers, RefuseAnEntryThatIsNone) {
  EXPECT_EQ(Yaml("workers: http://a\n").Refusal(),
            "c.yaml:1: workers: must be a list of URLs or maps, each after a dash");
  EXPECT_EQ(Yaml("workers:\n").Refusal(), "c.yaml:1: workers: has no value; give one or remove it");
  EXPECT_EQ(Yaml("workers:\n  - [a]\n").Refusal(),
            "c.yaml:2: a worker must be a URL or a map with a url");
  EXPECT_EQ(Yaml("workers:\n  - kv_events: x\n").Refusal(), "c.yaml:2: a worker needs a url");
  EXPECT_EQ(Yaml("workers:\n  - url:\n").Refusal(),
            "c.yaml:2: url: must be a single value that is not empty");
  EXPECT_EQ(Yaml("workers:\n  - url: http://a\n    url: http://b\n").Refusal(),
            "c.yaml:3: url: already set on line 2; remove one of them");
  EXPECT_EQ(Yaml("workers:\n  - a:8000\n").Refusal(),
            "c.yaml:2: worker 'a:8000' must start with http://, https://, dns+http://, "
            "dns+https://, k8s://, k8s-pods://, k8s-pool://, etcd://, etcds://, file://");
}

TEST(Workers, HaveARoleAndLabels) {
  const auto workers =
      Yaml("workers:\n  - url: http://a\n    role: decode\n    labels: {tier: gpu, rack: 7}\n")
          .Loaded()
          .workers();
  ASSERT_EQ(workers.size(), 1u);
  EXPECT_EQ(workers[0].role, "decode");
  EXPECT_THAT(workers[0].labels, ElementsAre(Pair("rack", "7"), Pair("tier", "gpu")));
  EXPECT_EQ(Yaml("workers:\n  - url: http://a\n    role: decoder\n").Refusal(),
            "c.yaml:3: role: must be prefill, decode or both");
  EXPECT_EQ(Yaml("workers:\n  - url: http://a\n    labels: [gpu]\n").Refusal(),
            "c.yaml:3: labels: must be a map of words, e.g. {tier: gpu}");
  EXPECT_EQ(Yaml("workers:\n  - url: http://a\n    labels: {a: {b: c}}\n").Refusal(),
            "c.yaml:3: labels: must be a map of words, e.g. {tier: gpu}");
  EXPECT_EQ(Yaml("workers:\n  - url: http://a\n    labels: {a: 1, a: 2}\n").Refusal(),
            "c.yaml:3: labels: has a twice");
}

TEST(Workers, AreSplitOnlyWhereAnotherSchemeBegins) {
  const std::string_view pods = "k8s-pods://prod/app=vllm,tier=gpu:8000";
  const std::string_view etcd = "etcd://a:2379,b:2379/fleet";
  const auto urls = [](std::vector<std::string_view> args) {
    return Args(std::move(args)).Loaded().List("worker-urls");
  };
  EXPECT_THAT(urls({"--worker-urls", "k8s-pods://prod/app=vllm,tier=gpu:8000,http://a:1"}),
              ElementsAre(pods, "http://a:1"));
  EXPECT_THAT(urls({"--worker-urls", "etcd://a:2379,b:2379/fleet", pods}), ElementsAre(etcd, pods));
  EXPECT_THAT(urls({"--worker-urls=,http://a:1,, http://b:1,"}),
              ElementsAre("http://a:1", "http://b:1"));
  const std::string_view set = "k8s-pods://prod/role in (a, b),x!=y:http";
  EXPECT_THAT(urls({"--worker-urls", set, "--worker-urls", "file:///w.yaml"}),
              ElementsAre(set, "file:///w.yaml"));
  EXPECT_EQ(Yaml("workers: ['k8s-pods://prod/role in (a, b),x!=y:http']").Loaded().workers()[0].url,
            set);
}

// A watched file

TEST(WorkersFile, HasAListBareOrNamed) {
  const auto named = ParseWorkersFile("w.yaml", "workers:\n  - http://a:1\n  - url: http://b:1\n");
  ASSERT_TRUE(named) << named.error().what;
  ASSERT_EQ(named->size(), 2u);
  EXPECT_EQ((*named)[1].url, "http://b:1");
  EXPECT_EQ((*named)[1].origin, "w.yaml:3");
  const auto bare = ParseWorkersFile("w.yaml", "- http://a:1\n- {url: http://b:1, role: both}\n");
  ASSERT_TRUE(bare) << bare.error().what;
  EXPECT_EQ((*bare)[1].role, "both");
  EXPECT_THAT(*ParseWorkersFile("w.yaml", "workers: []"), IsEmpty());
}

TEST(WorkersFile, IsRefusedWithTheReason) {
  const auto refusal = [](const std::string& yaml) {
    const auto read = ParseWorkersFile("w.yaml", yaml);
    return read ? "accepted" : read.error().what;
  };
  EXPECT_EQ(refusal(""), "w.yaml: is empty; write workers: [] if there shall be none");
  EXPECT_EQ(refusal("# nothing\n"), "w.yaml: is empty; write workers: [] if there shall be none");
  EXPECT_EQ(refusal("[]"), "w.yaml:1: is an empty list; write workers: [] if there shall be none");
  EXPECT_EQ(refusal("workers:\n"),
            "w.yaml:1: workers: must be a list of URLs or maps, each after a dash; write workers: "
            "[] for none");
  EXPECT_EQ(refusal("{}"), "w.yaml: must have the key workers with a list, or the list itself");
  EXPECT_EQ(refusal("hello"),
            "w.yaml:1: must have the key workers with a list, or the list itself");
  EXPECT_EQ(refusal("workers: [http://a]\nport: 1\n"),
            "w.yaml:2: port: no such key; a file of workers has the key workers");
  EXPECT_EQ(refusal("workers: [http://a]\nworkers: []\n"),
            "w.yaml:2: workers: already set on line 1; remove one of them");
  EXPECT_EQ(refusal("- http://a\n- url: x\n  rol: both\n"),
            "w.yaml:3: rol: no such key of a worker; did you mean role?");
  EXPECT_THAT(refusal("workers: [http://a"), ::testing::StartsWith("w.yaml:1:"));
  EXPECT_EQ(refusal("- http://a\n---\n- http://b\n"), "w.yaml: has more than one document");
  std::string many;
  for (int i = 0; i < 4097; ++i) many += fmt::format("- http://a:{}\n", i + 1);
  EXPECT_EQ(refusal(many), "w.yaml:1: has 4097 workers; at most 4096 are possible");
  EXPECT_THAT(refusal(std::string(100'000, '[')), ::testing::HasSubstr("w.yaml"));
  // An alias that would copy a large map often.
  EXPECT_EQ(refusal("- &a {url: http://a, labels: {x: " + std::string(70'000, 'y') + "}}\n- *a\n"),
            "w.yaml:1: labels: is too long");
}

TEST(Workers, RefuseAUrlTwice) {
  EXPECT_EQ(Yaml("workers:\n  - http://a\n  - url: http://a/\n").Refusal(),
            "c.yaml:3: worker 'http://a/' is already named by c.yaml:2; remove one of them");
  EXPECT_EQ((World{.args = {"--worker-urls", "http://a"}, .yaml = "workers: [http://a]"}.Refusal()),
            "c.yaml:1: worker 'http://a' is already named by flag --worker-urls; remove one of "
            "them");
}

}  // namespace
}  // namespace fathom
