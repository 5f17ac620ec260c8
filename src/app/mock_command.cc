#include <signal.h>

#include "app/command.h"
#include "mock/mock_server.h"

namespace fathom {
namespace {

MockedEngine EngineOf(const Settings& settings) {
  const std::string& name = settings.Choice("engine");
  if (name == "sglang") return MockedEngine::kSglang;
  if (name == "trtllm") return MockedEngine::kTrtllm;
  return MockedEngine::kVllm;
}

MockOptions MockOptionsOf(const Settings& s) {
  MockOptions o;
  o.name = s.Text("name");
  o.engine = EngineOf(s);
  o.models = s.List("model");
  o.api_key = s.Secret("api-key");
  o.tokens = static_cast<uint64_t>(s.Integer("tokens"));
  o.first_token_delay = s.Time("first-token-delay");
  o.token_interval = s.Time("token-interval");
  o.chunk_bytes = static_cast<size_t>(s.Integer("chunk-bytes"));
  o.fail_rate = s.Number("fail-rate");
  o.hang_rate = s.Number("hang-rate");
  o.die_after_tokens = static_cast<uint64_t>(s.Integer("die-after-tokens"));
  o.drain_abort = s.Flag("drain-abort");
  o.busy = s.Flag("busy");
  return o;
}

}  // namespace

int RunMock(const Settings& settings, Log& log) {
  const auto address =
      Address::Numeric(settings.Text("host"), static_cast<uint16_t>(settings.Integer("port")));
  if (!address) {
    log.Error("The mock listens on a numeric address", {{"host", settings.Text("host")}});
    return kExitUsage;
  }
  const size_t threads = std::max<int64_t>(1, settings.Integer("threads"));
  auto server = MockServer::Start(MockOptionsOf(settings), *address, threads, log);
  if (!server) {
    log.Error(server.error().what);
    return kExitUsage;
  }
  log.Info("Mock engine listening",
           {{"address", (*server)->address().ToString()}, {"name", (*server)->name()}});
  while (WaitForSignal(std::chrono::hours(1)) == 0) {
  }
  (*server)->Stop();
  return kExitFine;
}

}  // namespace fathom
