#include <signal.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/text.h"
#include "cli/command.h"
#include "io/net/signals.h"
#include "lab/mock/fault_page.h"
#include "lab/mock/mock_server.h"
#include "text/model/language_model.h"

namespace fathom {
namespace {

constexpr Duration kMockLook = std::chrono::milliseconds(10);

MockedEngine MockedEngineOf(const Settings& settings) {
  const std::string& name = settings.Choice("engine");
  if (name == "sglang") return MockedEngine::kSglang;
  if (name == "trtllm") return MockedEngine::kTrtllm;
  return MockedEngine::kVllm;
}

// A port, or "off".
Result<std::optional<uint16_t>> ReplayPortOf(const std::string& text) {
  if (text == "off") return std::optional<uint16_t>();
  const auto port = ParseDecimal(text);
  if (port && *port <= 65535) return static_cast<uint16_t>(*port);
  return Fail(Blame::kCaller, "--kv-events-replay-port '{}' must be a port, 0 or off", text);
}

// Empty: the real size (nullopt); "none": 0; or a number of tokens.
Result<std::optional<uint32_t>> BlockSizeReportOf(const std::string& text) {
  if (text.empty()) return std::optional<uint32_t>();
  if (text == "none") return 0;
  const auto size = ParseDecimal(text);
  if (size && *size >= 1 && *size <= 65536) return static_cast<uint32_t>(*size);
  return Fail(Blame::kCaller, "--block-size-report '{}' must be none, or tokens up to 65536", text);
}

Result<KvEventOptions> EventOptionsOf(const Settings& s) {
  KvEventOptions o;
  o.on = s.Choice("kv-events") == "on";
  o.wire = s.Text("wire");
  o.byte_hashes = s.Choice("wire-hashes") == "bytes";
  o.topic = s.Text("kv-events-topic");
  o.port = static_cast<uint16_t>(s.Integer("kv-events-port"));
  TRY(o.replay_port, ReplayPortOf(s.Text("kv-events-replay-port")));
  o.connect = s.Text("kv-events-connect");
  o.buffer_steps = static_cast<size_t>(s.Integer("kv-events-buffer"));
  o.drop_every = static_cast<uint64_t>(s.Integer("kv-drop-every"));
  o.lose_every = static_cast<uint64_t>(s.Integer("kv-lose-every"));
  o.delay = s.Time("kv-delay");
  o.silent = s.Flag("kv-silent");
  TRY(o.omission, ParseEventOmission(s.Choice("kv-events-fault")));
  o.block_size_label = static_cast<uint32_t>(s.Integer("kv-block-size-label"));
  o.restart_after = static_cast<uint64_t>(s.Integer("kv-restart-after"));
  o.restart_block_size = static_cast<uint32_t>(s.Integer("kv-restart-block-size"));
  return o;
}

Result<MockOptions> MockOptionsOf(const Settings& s) {
  MockOptions o;
  TRY(o.kv_events, EventOptionsOf(s));
  o.name = s.Text("name");
  o.engine = MockedEngineOf(s);
  o.models = s.List("model");
  o.loras = s.List("lora");
  if (const std::string& folder = s.Text("model-path"); !folder.empty()) {
    TRY(o.language_model, LanguageModel::Load({.model = folder, .tokenizer = {}}));
  }
  o.api_key = s.Secret("api-key");
  o.tokens = static_cast<uint64_t>(s.Integer("tokens"));
  o.cached_tokens_report = s.Flag("cached-tokens-report");
  o.force_usage = s.Flag("force-usage");
  o.reasoning_parser = s.Text("reasoning-parser");
  o.usage_with_choices = s.Flag("usage-with-choices");
  o.first_token_delay = s.Time("first-token-delay");
  o.token_interval = s.Time("token-interval");
  o.chunk_bytes = static_cast<size_t>(s.Integer("chunk-bytes"));
  o.fail_rate = s.Number("fail-rate");
  o.hang_rate = s.Number("hang-rate");
  o.die_after_tokens = static_cast<uint64_t>(s.Integer("die-after-tokens"));
  o.abort_after_tokens = static_cast<uint64_t>(s.Integer("abort-after-tokens"));
  o.drain_abort = s.Flag("drain-abort");
  o.busy = s.Flag("busy");
  o.refuse = s.Flag("refuse");
  o.slow_start = s.Time("slow-start");
  TRY(o.block_size_report, BlockSizeReportOf(s.Text("block-size-report")));
  o.report_delay = s.Time("report-delay");
  o.tokenize_delay = s.Time("tokenize-delay");
  o.prefix_caching = s.Flag("prefix-caching");
  o.tell_prefix_caching = s.Choice("prefix-caching-report") == "truth";
  TRY(o.prompt_fault, ParsePromptFault(s.Choice("prompt-fault")));
  o.profile = s.Choice("profile");
  o.speedup = s.Number("speedup");
  o.block_size = static_cast<uint32_t>(s.Integer("block-size"));
  o.num_blocks = static_cast<uint32_t>(s.Integer("num-blocks"));
  o.max_num_seqs = static_cast<uint32_t>(s.Integer("max-num-seqs"));
  o.max_num_batched_tokens = static_cast<uint32_t>(s.Integer("max-num-batched-tokens"));
  o.dp_size = static_cast<uint32_t>(s.Integer("dp-size"));
  o.iteration_statistics = s.Choice("iter-stats") == "on";
  o.seed = static_cast<uint64_t>(s.Integer("seed"));
  return o;
}

// Waits for the next signal.
int AwaitSignal() {
  for (;;) {
    if (const int signal = WaitForSignal(std::chrono::hours(1)); signal != 0) return signal;
  }
}

using Servers = std::vector<std::unique_ptr<MockServer>>;

bool AnyRunning(const Servers& servers) {
  return std::ranges::any_of(servers,
                             [](const auto& server) { return server->counts().in_flight > 0; });
}

// A second signal ends the running requests.
void FinishRunning(const Servers& servers) {
  while (AnyRunning(servers) && WaitForSignal(kMockLook) == 0) {
  }
}

void Leave(const Servers& servers, const std::string& how, Log& log) {
  log.Info("Mock engine shutting down", {{"how", how}});
  if (how == "abort") {
    for (const auto& server : servers) server->AbortNew();
    FinishRunning(servers);
  } else if (how == "abort-running") {
    for (const auto& server : servers) server->AbortRunning();
    FinishRunning(servers);
  } else if (how == "silent") {
    for (const auto& server : servers) server->FallSilent();
    AwaitSignal();
  }
}

// A port that was given is the first engine's, later engines get the next ports; 0: free ports.
Result<uint16_t> PortFor(uint16_t first, size_t place) {
  if (first == 0) return uint16_t{0};
  if (first + place > 65535) return Fail(Blame::kCaller, "port {} is above 65535", first + place);
  return static_cast<uint16_t>(first + place);
}

// The ranks of each instance follow those of the one before.
Result<MockOptions> OptionsFor(MockOptions options, size_t instance) {
  const size_t ranks = instance * options.dp_size;
  KvEventOptions& events = options.kv_events;
  TRY(events.port, PortFor(events.port, ranks));
  if (events.replay_port) {
    TRY(events.replay_port, PortFor(*events.replay_port, ranks));
  }
  options.seed += instance;
  return options;
}

Result<Servers> StartServers(const Settings& settings, const MockOptions& options,
                             const Address& first, Log& log) {
  const auto threads = static_cast<size_t>(settings.Integer("threads"));
  Servers servers;
  for (size_t i = 0; i < static_cast<size_t>(settings.Integer("instances")); ++i) {
    TRY(const uint16_t port, PortFor(first.port(), i));
    TRY(const MockOptions mine, OptionsFor(options, i));
    const Address address = *Address::Numeric(settings.Text("host"), port);
    TRY(auto server, MockServer::Start(mine, address, threads, log));
    log.Info("Mock engine listening",
             {{"address", server->address().ToString()}, {"name", server->name()}});
    servers.push_back(std::move(server));
  }
  return servers;
}

}  // namespace

int RunMock(const Settings& settings, Log& log) {
  const auto address =
      Address::Numeric(settings.Text("host"), static_cast<uint16_t>(settings.Integer("port")));
  if (!address) {
    log.Error("The mock needs a numeric address to listen on", {{"host", settings.Text("host")}});
    return kExitUsage;
  }
  auto options = MockOptionsOf(settings);
  if (!options) {
    log.Error(options.error().what);
    return kExitUsage;
  }
  options->ledger = std::make_shared<PrefixLedger>();
  auto servers = StartServers(settings, *options, *address, log);
  if (!servers) {
    log.Error(servers.error().what);
    return kExitUsage;
  }
  if (AwaitSignal() == SIGTERM) Leave(*servers, settings.Choice("on-sigterm"), log);
  for (const auto& server : *servers) server->Stop();
  return kExitFine;
}

}  // namespace fathom
